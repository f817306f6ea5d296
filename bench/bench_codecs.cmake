hipress_bench(codecs LIBRARIES hipress::kernels hipress::io)
