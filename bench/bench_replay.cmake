hipress_bench(replay SOURCES wires.cpp LIBRARIES hipress::replay hipress::io gloo)
