/* The C interface of libhipress.so. It averages gradients between the ranks of a job, compressed as a plan says, and
 * answers requests for plans, simulations and sweeps (hipress_call()). A program for rank r of 2 that averages:
 *
 *   hipress_gradient gradients[] = {{"fc.weight", 4096, HIPRESS_FLOAT32}, {"fc.bias", 64, HIPRESS_FLOAT32}};
 *   hipress_options options;
 *   hipress_options_init(&options);
 *   options.rank = r;
 *   options.ranks = 2;
 *   options.rendezvous = "file:///shared/folder";
 *   options.plan = "tbq";
 *   hipress_engine* engine;
 *   if (hipress_open(&options, gradients, 2, &engine) != HIPRESS_OK) die(hipress_last_error());
 *   ...
 *   hipress_work* work;                                   // in every iteration, as each gradient becomes ready
 *   hipress_tensor tensor = {values, 4096, HIPRESS_FLOAT32, 0, NULL};
 *   if (hipress_submit(engine, 0, &tensor, &work) != HIPRESS_OK) die(hipress_last_error());
 *   if (hipress_wait(work) != HIPRESS_OK) die(hipress_last_error());   // values now hold the mean
 *   ...
 *   hipress_close(engine);
 *
 * Before version 1.0 structures may grow at their ends, so compile a program with the header of the library that it runs
 * with.
 *
 * Everything is an argument: the engine reads no environment variables (only a Redis and compiled programs, if you name
 * one, have some: HIPRESS_REDIS_PASSWORD, CXX), installs no signal handlers, and never ends the process. A process may
 * open several engines. Functions may be called from any thread, unless they say otherwise. */
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

/** What a call returns. */
typedef enum hipress_status {
  HIPRESS_OK = 0,
  HIPRESS_FAILED = 1,  /**< the run failed on this rank: memory, threads, a damaged message */
  HIPRESS_INVALID = 2, /**< an argument is wrong; nothing has happened */
  HIPRESS_LOST = 3     /**< a rank no longer takes part: see hipress_culprit() and hipress_how_lost() */
} hipress_status;

/** How a rank was lost. */
typedef enum hipress_loss {
  HIPRESS_FAULT = 0, /**< it died, stalled, sent what it should not, or ended the job */
  HIPRESS_LEFT = 1   /**< it closed its engine, and other ranks went on */
} hipress_loss;

/** How numbers lie in memory. They are added in fp32, and rounded once. */
typedef enum hipress_type { HIPRESS_FLOAT32 = 0, HIPRESS_FLOAT16 = 1, HIPRESS_BFLOAT16 = 2 } hipress_type;

/** A gradient that every rank submits once per iteration. Members that an initialiser leaves out are zero, which is
 * their default. */
typedef struct hipress_gradient {
  const char* name; /**< unique; in a plan file, the plan's name for it */
  int64_t elements;
  hipress_type type;
  int dimensions;       /**< of `shape`, at most 16; 0: one dimension */
  const int64_t* shape; /**< outermost first, as in a framework; their product is `elements`. Copied. Null if there are
                             no dimensions */
  double ready_s;       /**< after the start of backward; plans whose bulk groups have a longest wait go by it */
} hipress_gradient;

/** A place of the caller's own where ranks leave what the others find, such as a framework's key-value store: entries
 * are bytes under names of letters, digits and '/'. Functions are called by the thread that is in hipress_open(). */
typedef struct hipress_store {
  void* context; /**< the functions' first argument */
  /** Makes an entry. Returns 1, or 0 if there is one of this name already, or -1 if it failed. */
  int (*add)(void* context, const char* name, const void* data, size_t bytes);
  /** Waits for an entry for up to so many seconds, and copies it, if it is not longer than `capacity`. Returns its length,
   * or -1 if it has not come, or -2 if the store failed. */
  int64_t (*wait)(void* context, const char* name, double seconds, void* data, size_t capacity);
} hipress_store;

/** What a job is. All but `rank` and `store` is the same on every rank. Texts are copied. */
typedef struct hipress_options {
  size_t bytes;             /**< of this structure, as hipress_options_init() sets it */
  int rank;                 /**< from 0 to ranks - 1 */
  int ranks;                /**< default 1 */
  const char* plan;         /**< a plan file, or none, all, or an algorithm's name; default "none": fp32 as it is */
  const char* topology;     /**< ps, ring, allreduce or allgather; default "ring" */
  const char* algorithm;    /**< of plan entries that are compressed but name none; default "onebit" */
  const char* transport;    /**< default "tcp" */
  const char* rendezvous;   /**< where ranks meet: file:///shared/folder, redis://host:port, or, for threads of one
                                 process, local:NAME */
  const char* network;      /**< network interface or address to use; default "": loopback */
  const char* job;          /**< tells jobs apart that meet in one place; default "hipress" */
  const void* secret;       /**< 16 to 65536 bytes that only this job's ranks know; default null: rank 0 leaves a secret
                                 at the rendezvous */
  size_t secret_bytes;
  double timeout_s;         /**< a job without progress for so long ends, default 30; also the longest wait for a rank
                                 to connect, or to submit what the others have submitted. A rank that is only late
                                 still sends beats: see silence_s */
  uint64_t seed;            /**< of random draws; default 1 */
  int device;               /**< the GPU on which tensors may lie, as CUDA counts; default -1: none */
  const hipress_store* store; /**< where ranks meet, instead of `rendezvous`, which then only names it in messages; used
                                   by hipress_open() alone; default null: none */
  int64_t group_bytes;        /**< of a plan that is named: smaller gradients that go raw or in half precision travel
                                   together in the order of the list, up to so many bytes at a time, when the last of
                                   them is submitted; for callers who submit many at a time. Default 0: each by itself */
  const uint32_t* fragments;  /**< per gradient, the fragment of the model that it belongs to, where parts of a model are
                                   averaged at different times (docs/local-updates.md): no bulk group has gradients of
                                   two. Copied; default null: all are of one */
  double silence_s;           /**< a rank that sends nothing for so long, not even the beats that a thread of the
                                   library sends once a second, is lost, whether or not it is waited for; default 300.
                                   hipress_news() tells of silence before that */
} hipress_options;

/** Values in memory that the caller lends until the work is done. */
typedef struct hipress_tensor {
  void* data;
  int64_t elements;
  hipress_type type;
  int on_device; /**< 1: the memory is that of the engine's GPU; 0: the host's */
  void* event;   /**< on a GPU: the cudaEvent_t, recorded already, after which the values are there; null: they are */
} hipress_tensor;

typedef struct hipress_engine hipress_engine;
typedef struct hipress_work hipress_work;
typedef struct hipress_model hipress_model;

/** Reads a model file (docs/models.md), or the shipped model of that name, and leaves it in `*model` (null after an
 * error). HIPRESS_INVALID, with file and line, for what is none. */
HIPRESS_API hipress_status hipress_read_model(const char* path, hipress_model** model);

/** Its gradients in the file's order, with the ready times of their buckets; they live until hipress_free_model(). */
HIPRESS_API const hipress_gradient* hipress_model_gradients(const hipress_model* model, size_t* count);

/** Frees it. Null is nothing. */
HIPRESS_API void hipress_free_model(hipress_model* model);

/** Sets the defaults. */
HIPRESS_API void hipress_options_init(hipress_options* options);

/** Connects to the other ranks, which takes until all have come, and leaves the engine in `*engine` (null after an
 * error). An error of one rank before it meets the others, such as a plan that cannot be read, is HIPRESS_INVALID on all
 * of them, with its reason, unless they meet in a shared folder: there they wait for it. The place of a gradient in the list is its number; the list is best in the order in which gradients become
 * ready. */
HIPRESS_API hipress_status hipress_open(const hipress_options* options, const hipress_gradient* gradients, size_t count,
                                        hipress_engine** engine);

/** Submits gradient number `gradient` and returns without waiting. Ranks may submit in different orders. A gradient may
 * be submitted again when its last work is done. `*work` (null after an error) is for hipress_wait(), or
 * hipress_release(). */
HIPRESS_API hipress_status hipress_submit(hipress_engine* engine, uint32_t gradient, const hipress_tensor* tensor,
                                          hipress_work** work);

/** Submits `count` gradients as hipress_submit() does one, in this order; for callers to whom a call is dear. After an
 * error, `works` holds those that were submitted before it, and null from there on. */
HIPRESS_API hipress_status hipress_submit_many(hipress_engine* engine, size_t count, const uint32_t* gradients,
                                               const hipress_tensor* tensors, hipress_work** works);

/** Waits until the tensor holds the mean over all ranks, and frees the work, whatever it returns. */
HIPRESS_API hipress_status hipress_wait(hipress_work* work);

/** Waits at most `seconds` until `count` works are done; `*done` says whether they are. If so, frees them all, sets them
 * to null, and returns what hipress_wait() would return of the first that failed. If not, frees none and returns
 * HIPRESS_OK, so that the caller can look after its signals and call again. Works that are null are done. */
HIPRESS_API hipress_status hipress_wait_all(hipress_work** works, size_t count, double seconds, int* done);

/** 1 if hipress_wait() would return at once, else 0. */
HIPRESS_API int hipress_done(const hipress_work* work);

/** Frees a work that nobody will wait for; what was submitted goes on. Null is nothing. */
HIPRESS_API void hipress_release(hipress_work* work);

/** Sets `*finite` to 1 if the means that tensors were given last are all finite numbers, else to 0; the same on every
 * rank. A loss scaler skips a step that has others: see hipress_discard(). */
HIPRESS_API hipress_status hipress_all_finite(const hipress_engine* engine, int* finite);

/** The last means of `count` gradients (null and 0: of all) were not applied, as in a step that is skipped: what encoders
 * keep for them becomes what it was before, so that what they had saved up for later is not lost. All ranks do the same,
 * before they submit these gradients again. */
HIPRESS_API hipress_status hipress_discard(hipress_engine* engine, const uint32_t* gradients, size_t count);

/** Leaves in `squares`, per gradient, the sum of the squares of its residual: of what this rank's encoders have left out so
 * far and will send later. Negative for one that keeps none of its own, as in a bulk group. `count` is that of the
 * gradients. Waits for what is under way. Not while another thread submits. */
HIPRESS_API hipress_status hipress_residuals(hipress_engine* engine, double* squares, size_t count);

/** What whoever trains with the plan must know, a line each, such as that an algorithm with momentum does not average;
 * empty: nothing. It lives until hipress_close(). */
HIPRESS_API const char* hipress_notes(const hipress_engine* engine);

/** What has happened since the last call, a line each: ranks that have been silent for 10 seconds, and those that are
 * back; empty: nothing. For callers who wait for works, to tell their users. It lives until the next call, or
 * hipress_close(); one thread at a time calls it. */
HIPRESS_API const char* hipress_news(hipress_engine* engine);

/** Writes what encoders keep between iterations (residuals, factors, counts of iterations) to a file, which appears at
 * once and complete. A checkpoint is such a file of every rank. Waits for what is under way. Not while another thread
 * submits. */
HIPRESS_API hipress_status hipress_save_state(hipress_engine* engine, const char* path);

/** Goes on as the engine of this rank would have that wrote the file, bit for bit; it must have had equal gradients, plan,
 * ranks and seed. HIPRESS_INVALID if the file does not fit, or is damaged; nothing has changed then. */
HIPRESS_API hipress_status hipress_load_state(hipress_engine* engine, const char* path);

/** Ends the job on every rank: what is under way fails, and all are told that this rank ended it, and why. Then
 * hipress_close() does not wait. Any thread may call it, at any time before hipress_close(). Null is nothing. */
HIPRESS_API void hipress_abort(hipress_engine* engine, const char* reason);

/** Waits for what is under way, leaves the job, and frees the engine; works may still be waited for. Also after a
 * failure. Not while another thread uses the engine. Null is nothing. */
HIPRESS_API void hipress_close(hipress_engine* engine);

/** What a plan decides for the job of `ranks` ranks whose parameters are in shards, as a JSON object: {"schedule", "named",
 * "shard", "reshard", "prefetch", "in_flight", "separate_communicators", "exchange_within", "gradients":
 * [{"algorithm", "gather"}...]}, in the order of the list, with null for what travels raw. `plan` and `algorithm` are as in
 * hipress_options; of a plan that is named ("named": true) "schedule" is null, and its gathers are raw. "shard" is the
 * number of neighbours that have all shards, "reshard" that of those who keep them between forward and backward, 1 for
 * layers that stay whole. HIPRESS_INVALID, with file and line, as hipress_open(), also for a plan of another schedule, and
 * for an algorithm that gathers or reductions of shards cannot be sent in. `*result` is for hipress_free_result(). */
HIPRESS_API hipress_status hipress_read_sharded_plan(const char* plan, const char* algorithm, int ranks,
                                                     const hipress_gradient* gradients, size_t count, char** result);

/** A compression algorithm for programs that carry messages themselves, in memory of the host, and what its encoders keep
 * between steps. One thread at a time. */
typedef struct hipress_codec hipress_codec;

/** What is known of an algorithm. */
typedef struct hipress_codec_traits {
  int varies;         /**< 1: messages are as long as the data make them; 0: always hipress_codec_bytes() */
  int keeps;          /**< 1: encoders keep what they leave out, where hipress_encode::state_elements asks for it */
  int half_precision; /**< 1: a message is an array of numbers of `message_type`, which can be added */
  hipress_type message_type;
} hipress_codec_traits;

/** Values to encode. Members that an initialiser leaves out are zero. */
typedef struct hipress_encode {
  const void* values;
  int64_t elements;
  hipress_type type;
  float divisor;          /**< values are divided by it first; finite; 0: by 1 */
  uint64_t step;          /**< random draws differ by step, node, gradient and role; so do those of different elements */
  uint32_t node;
  uint32_t gradient;
  uint32_t role;
  int64_t first_element;  /**< of the gradient: where the values begin, from 0 */
  int64_t state_elements; /**< of the gradient, whose residual is kept under its number and role, added to the values, and
                               replaced by what the message leaves out; 0: none is */
  void* message;          /**< 16-byte aligned */
  int64_t capacity;       /**< bytes, at least hipress_codec_bytes() */
  int64_t message_bytes;  /**< out: bytes that are used */
} hipress_encode;

/** Messages to decode: `values` become the sum of what they decode to, in their order, divided by `divisor`; it is reckoned
 * in fp32 and rounded once. */
typedef struct hipress_decode {
  const void* const* messages; /**< 16-byte aligned */
  const int64_t* message_bytes;
  size_t count;
  void* values;
  int64_t elements;
  hipress_type type;
  float divisor; /**< finite; 0: 1 */
} hipress_decode;

/** Makes a codec of an algorithm's text, such as int8block(block=128), with the seed of its random draws, and leaves it in
 * `*codec` (null after an error). HIPRESS_INVALID for a text that is none, a program (x.pse), and an algorithm whose
 * messages are of whole gradients alone. */
HIPRESS_API hipress_status hipress_codec_open(const char* algorithm, uint64_t seed, hipress_codec** codec);

/** Leaves in `*traits` what is known of its algorithm. */
HIPRESS_API hipress_status hipress_codec_describe(const hipress_codec* codec, hipress_codec_traits* traits);

/** The bytes of a message of so many elements, or the most where that varies; a multiple of 4. -1 after an error. */
HIPRESS_API int64_t hipress_codec_bytes(const hipress_codec* codec, int64_t elements);

/** Makes a message of each of `count` values. HIPRESS_INVALID, and nothing is encoded, for one that does not fit, and for two
 * that keep what they leave out of one element. */
HIPRESS_API hipress_status hipress_codec_encode(hipress_codec* codec, hipress_encode* encodes, size_t count);

/** Decodes and adds. HIPRESS_INVALID for a null pointer and a number of elements that no message has, HIPRESS_FAILED for a
 * message of another length: nothing is written then. HIPRESS_FAILED also for a message that is damaged. */
HIPRESS_API hipress_status hipress_codec_decode(const hipress_codec* codec, const hipress_decode* decodes, size_t count);

/** Writes what its encoders keep between steps to a file, which appears at once and complete. */
HIPRESS_API hipress_status hipress_codec_save(hipress_codec* codec, const char* path);

/** Goes on from such a file. HIPRESS_INVALID if it is damaged; nothing has changed then. */
HIPRESS_API hipress_status hipress_codec_load(hipress_codec* codec, const char* path);

/** Frees it. Null is nothing. */
HIPRESS_API void hipress_codec_close(hipress_codec* codec);

/** How far a request is. */
typedef struct hipress_progress {
  const char* stage; /**< "search", of sweeps "plans" and "simulations", of replays "iterations"; lives until the function returns */
  double share;      /**< that is done, from 0 to 1 */
  int64_t done;      /**< of plans, simulations or iterations */
  int64_t all;       /**< of them; 0 in a search */
  double best_s;     /**< of a search: the best iteration time so far; else 0 */
} hipress_progress;

/** What happens while a request is answered. Any function may be null. They must not call the library back. */
typedef struct hipress_call_options {
  size_t bytes;  /**< of this structure, as hipress_call_options_init() sets it */
  void* context; /**< the functions' first argument */
  /** What may mislead, and what was assumed: sentences that live until the function returns; by the calling
   * thread, but for warnings of ranks that are silent, which come from another. */
  void (*warn)(void* context, const char* sentence);
  void (*inform)(void* context, const char* sentence);
  /** By one thread at a time, perhaps another than the caller's. */
  void (*progress)(void* context, const hipress_progress* progress);
  /** 0, which any thread or signal handler may set to another value: a search for a plan then ends with the best plan so
   * far, and everything else without a result, when it next looks; simulations look all the time. */
  const volatile unsigned char* interrupt;
} hipress_call_options;

/** Sets the defaults: none. */
HIPRESS_API void hipress_call_options_init(hipress_call_options* options);

/** Answers a request as the command-line tools do: {"request": "plan", "input": "vgg19", "nnodes": 8}. The members are
 * the long options of hipress-plan ("plan"), hipress-sim ("simulate"), hipress-sim sweep ("sweep"), hipress-exec
 * ("replay"), hipress-profile ("profile") and hipress-import ("import_trace"), with underscores; {"request": "schema"} answers with their JSON schemas. The result is the object that
 * the tool prints with --json. Without "output" nothing is written.
 *
 * After an error, which the status tells (HIPRESS_INVALID: the request is wrong), the result is {"error": {"kind",
 * "message", "file", "line", "field", "remedy"}}, with null for what is not known. Kinds are "input", "unmet",
 * "environment", "interrupted" and "internal"; beside "unmet", "result" may hold what was found out all the same.
 *
 * `*result` is a text in UTF-8 for hipress_free_result(), and null only where there is no memory for it. Any number of
 * threads may call at a time. */
HIPRESS_API hipress_status hipress_call(const char* request, char** result);

/** The same with options; null: the defaults. */
HIPRESS_API hipress_status hipress_call_with(const hipress_call_options* options, const char* request, char** result);

/** Frees a result. Null is nothing. */
HIPRESS_API void hipress_free_result(char* result);

/** What was wrong with the last call of this thread that did not return HIPRESS_OK; valid until the next. */
HIPRESS_API const char* hipress_last_error(void);

/** The rank that is at fault, if that call returned HIPRESS_LOST; else -1. */
HIPRESS_API int hipress_culprit(void);

/** How that rank was lost, if that call returned HIPRESS_LOST; else HIPRESS_FAULT. */
HIPRESS_API hipress_loss hipress_how_lost(void);

#ifdef __cplusplus
}
#endif

#endif
