hipress_bench(exhaustive LIBRARIES hipress::planner hipress::io)
