hipress_bench(executor SOURCES wires.cpp LIBRARIES hipress::replay hipress::io gloo)
