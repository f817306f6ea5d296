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
  constexpr const char* kNoKernels = "with `base` no kernels are measured, unless `anew` kernels";
  made.under(headings::kJob);
  made.add("algorithm", &request.algorithms,
           "What to measure, separated by commas; staged ones at several ranks, whichever is "
           "given (default: " +
               kernels::algorithm_names() + ")")
      .idle(when([=, &request] { return !measures_kernels() && request.sample.empty(); },
                 kNoKernels));
  made.add("quick", &request.quick,
           "Fewer sizes and repetitions: a quarter of a minute for two algorithms on an idle "
           "machine");
  made.add("base", &request.base,
           "Profile of which but a part is measured anew (`anew`); the rest holds here too")
      .file();
  made.add("anew", &request.anew,
           "What `base` is measured anew for: links, for a network too slow to show what a "
           "transfer costs the CPU, or kernels, for a machine whose memory is not always as fast, "
           "or cores, what transfers cost these on links that are known, for such a machine, too "
           "(default: links)")
      .one_of({"links", "kernels", "cores"})
      .not_for(when(
          [&request] { return request.base.empty(); },
          "measures but a part: give `base` PROFILE for the rest, or leave it out to measure all"));
  made.add("sample", &request.sample,
           "File of fp32 numbers (one of your tensors, as it lies in memory): what messages "
           "of algorithms come to whose length varies with the data; with `base` and without "
           "`anew`, nothing else is measured")
      .file();
  made.under(headings::kMachines);
  made.add("nnodes", &request.nnodes,
           "Ranks between which links are measured (default: the launcher's, else 4 that share "
           "this machine)")
      .from(1, 1024);
  made.add("device", &request.device, "Where codecs run: cpu, or cuda")
      .one_of({"cpu", "cuda"})
      .with_default();
  made.add("transport", &request.transport,
           "What links are measured of: " + transport::describe_transports() +
               "; nccl (between GPUs). gloo's and nccl's all-gather, reduce-scatter and "
               "all-to-all are measured, too")
      .with_default();
  made.under(headings::kRun);
  made.add("passes", &request.passes,
           fmt::format("How often a CPU's kernels are measured, seconds apart; more where a "
                       "machine is shared (default: {})",
                       profiler::Options{}.passes))
      .from(1, 1000)
      .idle(when([&request] { return request.device == "cuda"; },
                 "it is for a CPU's kernels, not for `device` cuda"),
            when([=] { return !measures_kernels(); }, kNoKernels));
  made.add("again", &request.again,
           fmt::format("Measure again, so many times at most, where probes before and after say "
                       "that the machine's speed changed meanwhile (default: {}, with `quick` {})",
                       kAgain, kAgainQuick))
      .from(0, 1000);
  made.add("timeout", &request.timeout_s, "Seconds without progress after which the job ends")
      .between(transport::kMinTimeout_s, transport::kMaxTimeout_s)
      .with_default();
  add(made, request.ranks, request.transport,
      {.rendezvous = "Where the processes of a job meet that a launcher started, to measure the "
                     "links between them: file:///shared/folder, redis://host:port or, with TLS, "
                     "rediss://host:port",
       .interface = "Network interface or address of this process in a job (default: loopback)"});
  made.under(headings::kOutput);
  made.add("output", &request.output, "Profile to write").with_default().file();
  return made;
}

}  // namespace hipress::requests
