#include <fmt/format.h>

#include "kernels/codec/algorithm_list.hpp"
#include "kernels/codec/codec.hpp"
#include "profiler/profiler.hpp"
#include "requests/headings.hpp"
#include "requests/profile.hpp"

namespace hipress::requests {

Fields fields(ProfileRequest& request) {
  Fields made(request.given);
  const auto measures_kernels = [&request] {
    return request.base.empty() || request.anew == "kernels";
  };
  constexpr const char* kNoKernels = "with `base` kernels are measured only by `anew` kernels";
  made.under(headings::kJob);
  made.add("algorithm", &request.algorithms,
           "Algorithms to measure, separated by commas; staged ones are measured at several ranks, "
           "regardless of the given one (default: " +
               kernels::algorithm_names() + ")")
      .idle(when([=, &request] { return !measures_kernels() && request.sample.empty(); },
                 kNoKernels));
  made.add("quick", &request.quick,
           "Take fewer sizes and repetitions: 15 seconds for two algorithms on an idle machine");
  made.add("base", &request.base,
           "Profile of which only a part is measured anew (`anew`); its other values are kept")
      .file();
  made.add("anew", &request.anew,
           "Part of `base` to measure anew: links, if the network is too slow to show the CPU time "
           "of a transfer; kernels, if the speed of the machine's memory varies; or cores, the CPU "
           "time of transfers over known links, for such a machine, too (default: links)")
      .one_of({"links", "kernels", "cores"})
      .not_for(when([&request] { return request.base.empty(); },
                    "measures only a part: give `base` PROFILE for the rest, or leave it out to "
                    "measure all"));
  made.add("sample", &request.sample,
           "File of fp32 numbers (one of your tensors, as it lies in memory) for measuring the "
           "messages of algorithms whose length varies with the data; with `base` and without "
           "`anew`, nothing else is measured")
      .file();
  made.under(headings::kMachines);
  made.add("nnodes", &request.nnodes,
           "Number of ranks between which links are measured (default: the launcher's, else 4 that "
           "share this machine)")
      .from(1, 1024);
  made.add("device", &request.device, "Device of the codecs: cpu, or cuda")
      .one_of({"cpu", "cuda"})
      .with_default();
  made.add("transport", &request.transport,
           "Transport whose links are measured: " + transport::describe_transports() +
               "; nccl (between GPUs). gloo's and nccl's all-gather, reduce-scatter and "
               "all-to-all are measured, too")
      .with_default();
  made.under(headings::kRun);
  made.add("passes", &request.passes,
           fmt::format("Seconds between measurements of a CPU's kernels; take more on a shared "
                       "machine (default: {})",
                       profiler::Options{}.passes))
      .from(1, 1000)
      .idle(when([&request] { return request.device == "cuda"; },
                 "it applies to a CPU's kernels, not to `device` cuda"),
            when([=] { return !measures_kernels(); }, kNoKernels));
  made.add("again", &request.again,
           fmt::format(
               "Largest number of repetitions; a measurement is repeated if probes before and "
               "after it show that the machine's speed changed (default: {}, with `quick` {})",
               kAgain, kAgainQuick))
      .from(0, 1000);
  made.add("timeout", &request.timeout_s, "Seconds without progress after which the job ends")
      .between(transport::kMinTimeout_s, transport::kMaxTimeout_s)
      .with_default();
  add(made, request.ranks, request.transport,
      {.rendezvous = "Rendezvous of the processes of a job that a launcher started, to measure the "
                     "links between them: file:///shared/folder, redis://host:port or, with TLS, "
                     "rediss://host:port",
       .interface = "Network interface or address of this process in a job (default: loopback)"});
  made.under(headings::kOutput);
  made.add("output", &request.output, "Profile to write").with_default().file();
  return made;
}

}  // namespace hipress::requests
