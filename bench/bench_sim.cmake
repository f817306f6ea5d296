hipress_bench(sim SOURCES bare_loop.cpp LIBRARIES hipress::sim hipress::io)
