hipress_bench(bound LIBRARIES hipress::planner hipress::io)
