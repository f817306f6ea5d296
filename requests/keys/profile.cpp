#include "requests/keys/forms.hpp"

namespace hipress::requests {
namespace {

constexpr auto kSometimes = Presence::kSometimes;

constexpr ResultKey kKeys[] = {
    {"profile", "string", "The file that was written"},
    {"hardware", "string", "What was measured"},
    {"device", "string", "cpu or cuda"},
    {"memory_bandwidth_Bps", "number", "Bytes that are read or written in a second"},
    {"codecs", "object", "Rates in bytes of gradient in a second, of slices of 2²² elements"},
    {"codecs.*", "object", "An algorithm"},
    {"codecs.*.encode_Bps", "number", "Encoding; of several stages, all together"},
    {"codecs.*.decode_Bps", "number", "Decoding"},
    {"codecs.*.decode_add_Bps", "number", "Decoding and adding; not of algorithms with stages",
     kSometimes},
    {"codecs.*.stages", "integer", "Of an algorithm with stages, measured on a 2048 × 2048 matrix",
     kSometimes},
    {"codecs.*.rank", "integer", "The rank that it was measured with", kSometimes},
    {"codecs.*.encode_factor_quotients", "number",
     "How many times as long an encode takes that divides what it reads", kSometimes},
    {"codecs.*.message_share", "number", "Bytes of a message over bytes of its values", kSometimes},
    {"codecs.*.encode_of_ceiling", "number?",
     "With cuda: the share of the memory's bandwidth that the least traffic takes", kSometimes},
    {"codecs.*.decode_of_ceiling", "number?", "The same of decoding", kSometimes},
    {"overlap", "object", "How many times as long things take beside each other"},
    {"overlap.compute_codec", "number", "Computation and compression; of the assumed mix"},
    {"overlap.compute_transfer", "number", "Computation and transfers"},
    {"overlap.codec_transfer", "number", "Compression and transfers"},
    {"overlap.codec_beside_transfer", "number", "With cuda: compression beside transfers",
     kSometimes},
    {"overlap.transfer_beside_codec", "number", "With cuda: transfers beside compression",
     kSometimes},
    {"overlap.classes", "object", "With cuda: by class of computation", kSometimes},
    {"overlap.classes.*", "object", "A class"},
    {"overlap.classes.*.beside_codec", "number", "The class beside compression"},
    {"overlap.classes.*.beside_transfer", "number", "The class beside transfers"},
    {"overlap.classes.*.slows_codec", "number", "Compression beside the class"},
    {"overlap.classes.*.slows_transfer", "number", "Transfers beside the class"},
    {"nccl_tests[]", "object", "Collectives, as nccl-tests prints them"},
    {"nccl_tests[].test", "string", "The collective"},
    {"nccl_tests[].ranks", "integer", "Ranks that took part"},
    {"nccl_tests[].size_bytes", "integer", "Bytes of the buffer"},
    {"nccl_tests[].time_s", "number", "The time that it took"},
    {"nccl_tests[].algbw_Bps", "number", "Bytes over time"},
    {"nccl_tests[].busbw_Bps", "number", "The bandwidth that links need for it"},
    {"spread", "object", "Standard deviations of the logarithms of costs"},
    {"spread.host", "number", "Of compression and copies, from run to run"},
    {"spread.links", "number", "Of links"},
    {"spread.compute", "number", "Of computation"},
    {"spread.model", "number", "Of the prediction itself"},
    {"spread.iterations", "number", "Of iterations of a run"},
    {"probes", "object", "Speeds that later replays compare with; 0: not run"},
    {"probes.copy_Bps", "number", "Copying memory"},
    {"probes.codec_Bps", "number", "A codec"},
    {"probes.transport_Bps", "number", "The transport"},
    {"notes[]", "string", "What to know before trusting the profile, a sentence each"},
    {"link", "object", "What a message costs"},
    {"link.bandwidth_Bps", "number", "Bytes in a second"},
    {"link.overhead_s", "number", "The link's time for a message besides"},
    {"link.latency_s", "number", "From its end there to its arrival"},
    {"link.core_s_per_byte", "number", "A core's time for a byte"},
    {"link.core_factor_interrupting", "number", "How many times that, where a core is interrupted"},
    {"link.core_s_per_message", "number", "A core's time for a message besides"},
};

}  // namespace

constinit const ResultForm kProfileForm = {"profile", "What was measured", "Of hipress-profile",
                                           kKeys};

}  // namespace hipress::requests
