/* The C interface of libhipress.so. It averages gradients between the ranks of a job, compressed as
 * a plan says, and answers requests for plans, simulations and sweeps (hipress_call()). A program
 * for rank r of 2 that averages:
 *
 *   hipress_gradient gradients[] = {{"fc.weight", 4096, HIPRESS_FLOAT32},
 *                                   {"fc.bias", 64, HIPRESS_FLOAT32}};
 *   hipress_options options;
 *   hipress_options_init(&options);
 *   options.rank = r;
 *   options.ranks = 2;
 *   options.rendezvous = "file:///shared/folder";
 *   options.plan = "tbq";
 *   hipress_engine* engine;
 *   if (hipress_open(&options, gradients, 2, &engine) != HIPRESS_OK) die(hipress_last_error());
 *   ...
 *   // In every iteration, as each gradient becomes ready:
 *   hipress_tensor tensor = {values, 4096, HIPRESS_FLOAT32, 0, NULL};
 *   hipress_work* work;
 *   if (hipress_submit(engine, 0, &tensor, &work) != HIPRESS_OK) die(hipress_last_error());
 *   if (hipress_wait(work) != HIPRESS_OK) die(hipress_last_error());  // values now hold the mean
 *   ...
 *   hipress_close(engine);
 *
 * Before version 1.0 structures may grow at their ends, so compile a program with the header of the
 * library that it runs with.
 *
 * All settings are arguments: the engine reads no environment variables (except
 * HIPRESS_REDIS_PASSWORD for a Redis, CXX for compiled programs, and those of the cache folder, if
 * you name one of these or let the job choose its plan), installs no
 * signal handlers, and never ends the process. A process may open several engines. Functions may be
 * called from any thread, unless they say otherwise. */
#ifndef HIPRESS_RUNTIME_HIPRESS_H
#define HIPRESS_RUNTIME_HIPRESS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HIPRESS_API __attribute__((visibility("default")))
#else
#define HIPRESS_API
#endif

/** Status of a call. */
typedef enum hipress_status {
  HIPRESS_OK = 0,
  HIPRESS_FAILED = 1,  /**< the run failed on this rank: no memory or thread, a damaged message */
  HIPRESS_INVALID = 2, /**< an argument is invalid; the call had no effect */
  HIPRESS_LOST = 3     /**< a rank was lost: see hipress_culprit() and hipress_how_lost() */
} hipress_status;

/** Reason why a rank is no longer there. */
typedef enum hipress_loss {
  HIPRESS_FAULT = 0, /**< it died, stalled, sent invalid data or aborted the job */
  HIPRESS_LEFT = 1   /**< it closed its engine, and other ranks went on */
} hipress_loss;

/** Verdict on a way of averaging, by its speedups over another one. */
typedef enum hipress_verdict {
  HIPRESS_UNDECIDED = 0,
  HIPRESS_FASTER = 1,    /**< faster by more than the noise and by at least 0.5 % */
  HIPRESS_NOT_FASTER = 2 /**< gain below 0.5 %, far slower, or undecided after eight speedups */
} hipress_verdict;

/** Type of numbers in memory. Sums are computed in fp32 and rounded once. */
typedef enum hipress_type {
  HIPRESS_FLOAT32 = 0,
  HIPRESS_FLOAT16 = 1,
  HIPRESS_BFLOAT16 = 2
} hipress_type;

/** A gradient that every rank submits once per iteration. Members that an initialiser leaves out
 * are zero, which is their default. */
typedef struct hipress_gradient {
  const char* name; /**< unique; the gradient's name in a plan file */
  int64_t elements;
  hipress_type type;
  int dimensions;       /**< number of dimensions of `shape`, at most 16; 0: one dimension */
  const int64_t* shape; /**< outermost dimension first; the product is `elements`; copied; null if
                           there are no dimensions */
  double ready_s; /**< time after the start of backward; used by bulk groups with a maximum wait,
                     and by hipress_options::automatic */
} hipress_gradient;

/** A caller's key-value store for the rendezvous, such as a framework's. Entries are bytes under
 * names of letters, digits and '/'. The functions are called by the thread that called
 * hipress_open(). */
typedef struct hipress_store {
  void* context; /**< first argument of the functions */
  /** Adds an entry. Returns 1, or 0 if the name is taken, or -1 on failure. */
  int (*add)(void* context, const char* name, const void* data, size_t bytes);
  /** Waits up to `seconds` for an entry, and copies it if it is at most `capacity` bytes long.
   * Returns its length, or -1 if it has not come, or -2 if the store failed. */
  int64_t (*wait)(void* context, const char* name, double seconds, void* data, size_t capacity);
} hipress_store;

/** Parameters of a job. All but `rank` and `store` are the same on every rank. Texts are copied. */
typedef struct hipress_options {
  size_t bytes;         /**< size of this structure, set by hipress_options_init() */
  int rank;             /**< from 0 to ranks - 1 */
  int ranks;            /**< default 1 */
  const char* plan;     /**< a plan file, or none, all, or an algorithm's name; default "none":
                           uncompressed fp32 */
  const char* topology; /**< ps, ring, allreduce or allgather; default "ring" */
  /** Codec of plan entries that are compressed but name none; default "onebit" */
  const char* algorithm;
  const char* transport;  /**< default "tcp" */
  const char* rendezvous; /**< meeting point of the ranks: file:///shared/folder, redis://host:port,
                             or, for threads of one process, local:NAME */
  const char* network;    /**< network interface or address to use; default "": loopback */
  const char* job;        /**< unique name of the job at the rendezvous; default "hipress" */
  const void* secret; /**< shared secret of the job's ranks, 16 to 65536 bytes; default null: rank 0
                         publishes a secret at the rendezvous */
  size_t secret_bytes;
  double timeout_s; /**< time without progress after which the job ends, default 30; also the
                       longest wait for a rank to connect, or to submit a gradient that the others
                       have submitted. A late rank still sends heartbeats: see silence_s */
  uint64_t seed;    /**< seed of random draws; default 1 */
  int device;       /**< CUDA ordinal of the GPU on which tensors may lie; default -1: no GPU */
  /** Store to use instead of `rendezvous`, which is then only its name in messages; used by
   * hipress_open() alone; default null: not used */
  const hipress_store* store;
  int64_t group_bytes; /**< size of fusion buffers, for named plans: smaller gradients that are raw
                          or in half precision are grouped in the order of the list, up to this many
                          bytes. A group is sent when its last member is submitted; for callers who
                          submit many at a time. Default 0: no groups */
  const uint32_t* fragments; /**< fragment of each gradient, if parts of a model are averaged at
                                different times (docs/local-updates.md): no bulk group has gradients
                                of two fragments. Copied; default null: one fragment */
  double silence_s; /**< time without any record from a rank after which it counts as lost, whether
                       or not it is awaited; default 300. A thread of the library sends heartbeats
                       once a second. hipress_news() reports shorter silence */
  int automatic; /**< 1: hipress_open() measures the links between the ranks, and rank 0 plans with
                    int8block and fp16, in any topology. The job takes the plan if the whole
                    interval of its predicted speedup is above 1, else the fastest plan without
                    compression; hipress_notes() says which. Needs the gradients' ready_s: without
                    them, nothing is compressed. `plan` must be "none"; `topology` and `algorithm`
                    have no effect. Default 0: the given plan */
  const char* profile; /**< with `automatic`: costs of kernels, a profile's file or shipped name,
                          which rank 0 reads; default "": those of rank 0's machine. They are
                          measured the first time, which takes 15 seconds or more, and kept in the
                          file that hipress_cached_profile() names */
} hipress_options;

/** Values of a gradient. The caller keeps the memory valid until the work is done. */
typedef struct hipress_tensor {
  void* data;
  int64_t elements;
  hipress_type type;
  int on_device; /**< 1: on the engine's GPU; 0: on the host */
  void* event; /**< on a GPU: recorded cudaEvent_t after which the values are valid; null: they are
                  valid now */
} hipress_tensor;

typedef struct hipress_engine hipress_engine;
typedef struct hipress_work hipress_work;
typedef struct hipress_model hipress_model;

/** Reads a model file (docs/models.md), or the shipped model of that name, into `*model` (null
 * after an error). Returns HIPRESS_INVALID if it is not a valid model; the error names file and
 * line. */
HIPRESS_API hipress_status hipress_read_model(const char* path, hipress_model** model);

/** Gradients of a model in the file's order, with the ready times of their buckets. Valid until
 * hipress_free_model(). */
HIPRESS_API const hipress_gradient* hipress_model_gradients(const hipress_model* model,
                                                            size_t* count);

/** Frees a model. Null has no effect. */
HIPRESS_API void hipress_free_model(hipress_model* model);

/** Sets all options to their defaults. */
HIPRESS_API void hipress_options_init(hipress_options* options);

/** Connects to the other ranks, waits until all have come, and sets `*engine` (null after an
 * error). If a rank fails before it meets the others, for example on an unreadable plan, the call
 * returns HIPRESS_INVALID with that reason on all ranks. In a shared folder, only ranks that come
 * within 5 s learn the reason; later ones wait until their timeout. A gradient's index in the list
 * is its number. It is best to list gradients in the order in which they become ready. */
HIPRESS_API hipress_status hipress_open(const hipress_options* options,
                                        const hipress_gradient* gradients, size_t count,
                                        hipress_engine** engine);

/** Submits gradient number `gradient` and returns without waiting. Ranks may submit in different
 * orders. A gradient may be submitted again when its last work is done. Pass `*work` (null after an
 * error) to hipress_wait() or hipress_release(). */
HIPRESS_API hipress_status hipress_submit(hipress_engine* engine, uint32_t gradient,
                                          const hipress_tensor* tensor, hipress_work** work);

/** Submits `count` gradients in this order, as hipress_submit() does for one, with fewer calls.
 * After an error, `works` holds the works submitted before it, and null from there on. */
HIPRESS_API hipress_status hipress_submit_many(hipress_engine* engine, size_t count,
                                               const uint32_t* gradients,
                                               const hipress_tensor* tensors, hipress_work** works);

/** Waits until the tensor holds the mean over all ranks. Frees the work in any case. */
HIPRESS_API hipress_status hipress_wait(hipress_work* work);

/** Waits at most `seconds` until `count` works are done, and sets `*done`. If all are done, frees
 * them, sets them to null, and returns the status of the first that failed. If not, frees none and
 * returns HIPRESS_OK, so that the caller can handle signals and call again. Null works count as
 * done. */
HIPRESS_API hipress_status hipress_wait_all(hipress_work** works, size_t count, double seconds,
                                            int* done);

/** 1 if hipress_wait() would return at once, else 0. */
HIPRESS_API int hipress_done(const hipress_work* work);

/** Frees a work without waiting for it; the submitted gradient is still averaged. Null has no
 * effect. */
HIPRESS_API void hipress_release(hipress_work* work);

/** Sets `*finite` to 1 if the last means of all gradients are finite numbers, else to 0; the same
 * on every rank. A loss scaler skips a step with non-finite means: see hipress_discard(). */
HIPRESS_API hipress_status hipress_all_finite(const hipress_engine* engine, int* finite);

/** Undoes the last iteration of `count` gradients (`gradients` null and `count` 0: all) whose means
 * were not applied, such as in a skipped step. Restores the encoders' residuals, so that nothing is
 * lost. All ranks must do the same, before they submit these gradients again. */
HIPRESS_API hipress_status hipress_discard(hipress_engine* engine, const uint32_t* gradients,
                                           size_t count);

/** Sets `squares` to the squared norm of each gradient's residual: values that this rank's encoders
 * have left out so far and will send later. Negative for a gradient without a residual of its own,
 * such as a member of a bulk group. `count` is the number of gradients. Waits for running units. Do
 * not call it while another thread submits. */
HIPRESS_API hipress_status hipress_residuals(hipress_engine* engine, double* squares, size_t count);

/** Moves this rank's residual of a gradient into `values`, `elements` numbers in the scale of its
 * gradients, and leaves zeros. If the values are added to the rank's next gradient, nothing is
 * lost, even if another engine averages that. Call this before hipress_close() if training
 * continues with a different plan. Waits for running units. Do not call it while another thread
 * submits. */
HIPRESS_API hipress_status hipress_take_residual(hipress_engine* engine, uint32_t gradient,
                                                 float* values, int64_t elements);

/** Warnings for training with the plan, one per line, for example that an algorithm with momentum
 * does not average; may be empty. Valid until hipress_close(). */
HIPRESS_API const char* hipress_notes(const hipress_engine* engine);

/** News since the last call, one per line: ranks that have been silent for 10 seconds, and ranks
 * that are heard again; may be empty. Meant for callers who wait for works, to inform their users.
 * Valid until the next call or hipress_close(). Call it from one thread at a time. */
HIPRESS_API const char* hipress_news(hipress_engine* engine);

/** Measures the links between the ranks, mostly in less than a tenth of a second. Sets `*bandwidth`
 * to the bytes per second of a rank that sends and receives at once, and `*latency_s` to the time
 * of a small message. Both are the same on every rank. All ranks call it together, while no
 * gradient is submitted. Returns HIPRESS_INVALID if the job has one rank. */
HIPRESS_API hipress_status hipress_measure_links(hipress_engine* engine, double* bandwidth,
                                                 double* latency_s);

/** Sets `*path` to the file in the cache folder (HIPRESS_CACHE, XDG_CACHE_HOME/hipress or
 * HOME/.cache/hipress) that keeps this machine's costs: of `algorithms`, a list separated by
 * commas, and of links between `ranks` ranks (at least 2, at most 4). The file may not exist yet.
 * Free the path with hipress_free_result(). Returns HIPRESS_INVALID without a cache folder. */
HIPRESS_API hipress_status hipress_cached_profile(const char* algorithms, int ranks, char** path);

/** Judges a way of averaging by its speedups over another one. The two take turns in blocks of
 * iterations; each pair of blocks gives one speedup. Returns HIPRESS_INVALID for a speedup that is
 * not a positive number. */
HIPRESS_API hipress_status hipress_judge(const double* speedups, size_t count,
                                         hipress_verdict* verdict);

/** Saves the encoders' state (residuals, factors, iteration counts) to a file, atomically. A
 * checkpoint consists of such a file per rank. Waits for running units. Do not call it while
 * another thread submits. */
HIPRESS_API hipress_status hipress_save_state(hipress_engine* engine, const char* path);

/** Restores the state that an engine of this rank saved: later means are bit-identical to its own.
 * That engine must have had equal gradients, plan, ranks and seed. Returns HIPRESS_INVALID, without
 * any effect, if the file does not match or is damaged. */
HIPRESS_API hipress_status hipress_load_state(hipress_engine* engine, const char* path);

/** Aborts the job on every rank: pending works fail, with this rank as culprit and with the reason.
 * hipress_close() then does not wait. Any thread may call it, at any time before hipress_close().
 * Null has no effect. */
HIPRESS_API void hipress_abort(hipress_engine* engine, const char* reason);

/** Waits for running units, leaves the job, and frees the engine; works may still be waited for.
 * Also call it after a failure. Do not call it while another thread uses the engine. Null has no
 * effect. */
HIPRESS_API void hipress_close(hipress_engine* engine);

/** Reads a plan for a job of `ranks` ranks with sharded parameters. The result is a JSON object:
 * {"schedule", "named", "shard", "reshard", "prefetch", "in_flight", "separate_communicators",
 * "exchange_within", "gradients": [{"algorithm", "gather"}...]}, in the order of the list, with
 * null for raw transfers. `plan` and `algorithm` are as in hipress_options. For a named plan
 * ("named": true), "schedule" is null and gathers are raw. "shard" is the number of neighbouring
 * ranks that together hold all shards. "reshard" is the number of ranks that together hold them
 * between forward and backward; it is 1 if layers stay whole. Returns HIPRESS_INVALID, with file
 * and line, as hipress_open() does, and also if the plan's schedule has no shards, or if gathers or
 * reductions of shards cannot use an algorithm. Free `*result` with hipress_free_result(). */
HIPRESS_API hipress_status hipress_read_sharded_plan(const char* plan, const char* algorithm,
                                                     int ranks, const hipress_gradient* gradients,
                                                     size_t count, char** result);

/** A codec with its encoders' state, for programs that send messages themselves, in host memory.
 * Use it from one thread at a time. */
typedef struct hipress_codec hipress_codec;

/** Properties of an algorithm. */
typedef struct hipress_codec_traits {
  int varies; /**< 1: a message's length depends on the data; 0: it is always hipress_codec_bytes()
               */
  int keeps;  /**< 1: encoders keep residuals, if hipress_encode::state_elements is set */
  int half_precision; /**< 1: a message is an array of `message_type`, so messages can be added */
  hipress_type message_type;
} hipress_codec_traits;

/** Values to encode. Members that an initialiser leaves out are zero. */
typedef struct hipress_encode {
  const void* values;
  int64_t elements;
  hipress_type type;
  float divisor; /**< divisor of the values before encoding; finite; 0: 1 */
  uint64_t step; /**< random draws depend on step, node, gradient, role and element */
  uint32_t node;
  uint32_t gradient;
  uint32_t role;
  int64_t first_element;  /**< index of the first value in the gradient, from 0 */
  int64_t state_elements; /**< size of the gradient; 0: no residual. The residual kept for
                             `gradient` and `role` is added to the values, and then replaced by the
                             part that the message leaves out */
  void* message;          /**< 16-byte aligned */
  int64_t capacity;       /**< size of `message` in bytes, at least hipress_codec_bytes() */
  int64_t message_bytes;  /**< output: length of the message in bytes */
} hipress_encode;

/** Messages to decode: `values` become the sum of the decoded messages, in their order, divided by
 * `divisor`; computed in fp32 and rounded once. */
typedef struct hipress_decode {
  const void* const* messages; /**< 16-byte aligned */
  const int64_t* message_bytes;
  size_t count;
  void* values;
  int64_t elements;
  hipress_type type;
  float divisor; /**< finite; 0: 1 */
} hipress_decode;

/** Creates a codec from an algorithm's text, such as int8block(block=128), with the seed of its
 * random draws, in `*codec` (null after an error). Returns HIPRESS_INVALID for an invalid text, a
 * program (x.pse), or an algorithm whose messages need whole gradients. */
HIPRESS_API hipress_status hipress_codec_open(const char* algorithm, uint64_t seed,
                                              hipress_codec** codec);

/** Sets `*traits` to the properties of the codec's algorithm. */
HIPRESS_API hipress_status hipress_codec_describe(const hipress_codec* codec,
                                                  hipress_codec_traits* traits);

/** Length in bytes of a message of `elements` elements, or an upper bound if the length varies; a
 * multiple of 4. Returns -1 after an error. */
HIPRESS_API int64_t hipress_codec_bytes(const hipress_codec* codec, int64_t elements);

/** Encodes `count` items. Returns HIPRESS_INVALID, without encoding anything, if an item is invalid
 * or two items keep a residual of the same element. */
HIPRESS_API hipress_status hipress_codec_encode(hipress_codec* codec, hipress_encode* encodes,
                                                size_t count);

/** Decodes and adds messages. Returns HIPRESS_INVALID for a null pointer or an invalid number of
 * elements, and HIPRESS_FAILED for a message of the wrong length; nothing is written in these
 * cases. Also returns HIPRESS_FAILED for a damaged message. */
HIPRESS_API hipress_status hipress_codec_decode(const hipress_codec* codec,
                                                const hipress_decode* decodes, size_t count);

/** Saves the encoders' state to a file, atomically. */
HIPRESS_API hipress_status hipress_codec_save(hipress_codec* codec, const char* path);

/** Restores the state from such a file. Returns HIPRESS_INVALID, without any effect, if it is
 * damaged. */
HIPRESS_API hipress_status hipress_codec_load(hipress_codec* codec, const char* path);

/** Frees a codec. Null has no effect. */
HIPRESS_API void hipress_codec_close(hipress_codec* codec);

/** Progress of a request. */
typedef struct hipress_progress {
  const char* stage; /**< "search"; for sweeps "plans" and "simulations"; for replays "iterations";
                        valid until the function returns */
  double share;      /**< completed share, from 0 to 1 */
  int64_t done;      /**< completed plans, simulations or iterations */
  int64_t all;       /**< total number of them; 0 in a search */
  double best_s;     /**< search: best iteration time so far; else 0 */
} hipress_progress;

/** Callbacks during a request. Any function may be null. They must not call the library. */
typedef struct hipress_call_options {
  size_t bytes;  /**< size of this structure, set by hipress_call_options_init() */
  void* context; /**< first argument of the functions */
  /** Warnings and assumptions, as sentences that are valid until the function returns. Called by
   * the calling thread, except for warnings of silent ranks, which come from another thread. */
  void (*warn)(void* context, const char* sentence);
  void (*inform)(void* context, const char* sentence);
  /** Called by one thread at a time, possibly not the caller's. */
  void (*progress)(void* context, const hipress_progress* progress);
  /** Interrupt flag, initially 0. Any thread or signal handler may set it. At its next check, a
   * search for a plan then ends with the best plan so far, and any other request without a result.
   * Simulations check all the time. */
  const volatile unsigned char* interrupt;
} hipress_call_options;

/** Sets the defaults: no callbacks. */
HIPRESS_API void hipress_call_options_init(hipress_call_options* options);

/** Answers a request as the command-line tools do: {"request": "plan", "input": "vgg19", "nnodes":
 * 8}. The members are the long options of hipress-plan ("plan"), hipress-sim ("simulate"),
 * hipress-sim sweep ("sweep"), hipress-exec ("replay"), hipress-profile ("profile") and
 * hipress-import ("import_trace"), with underscores; {"request": "schema"} answers with their JSON
 * schemas. The result is the object that the tool prints with --json. No file is written without
 * "output".
 *
 * After an error, which the status reports (HIPRESS_INVALID: the request is invalid), the result is
 * {"error": {"kind", "message", "file", "line", "field", "remedy"}}, with null for unknown values.
 * Kinds are "input", "unmet", "environment", "interrupted" and "internal"; with "unmet", "result"
 * may hold a partial result.
 *
 * `*result` is a UTF-8 text for hipress_free_result(), null only if out of memory. Any number of
 * threads may call this at the same time. */
HIPRESS_API hipress_status hipress_call(const char* request, char** result);

/** As hipress_call(), with options. If `options` is null, the defaults apply. */
HIPRESS_API hipress_status hipress_call_with(const hipress_call_options* options,
                                             const char* request, char** result);

/** Frees a result. Null has no effect. */
HIPRESS_API void hipress_free_result(char* result);

/** Error message of this thread's last call that did not return HIPRESS_OK. Valid until the next
 * failed call. */
HIPRESS_API const char* hipress_last_error(void);

/** Rank at fault, if that call returned HIPRESS_LOST; else -1. */
HIPRESS_API int hipress_culprit(void);

/** Reason of that loss, if that call returned HIPRESS_LOST; else HIPRESS_FAULT. */
HIPRESS_API hipress_loss hipress_how_lost(void);

#ifdef __cplusplus
}
#endif

#endif
