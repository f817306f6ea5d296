hipress_bench(planner LIBRARIES hipress::planner hipress::io)
