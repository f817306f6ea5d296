hipress_bench(executor LIBRARIES hipress::executor hipress::io gloo)
