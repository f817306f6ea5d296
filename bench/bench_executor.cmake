hipress_bench(executor SOURCES wires.cpp LIBRARIES hipress::executor hipress::io gloo)
