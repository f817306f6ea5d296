/* Averages tensors over two processes with libhipress.so, as a C program that only uses its header.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/hipress.h"

enum { kRanks = 2, kGradients = 3, kIterations = 5 };

static const int64_t kShape[] = {50, 20}; /* of the weight */
static const hipress_gradient kAll[kGradients] = {{"weight", 1000, HIPRESS_FLOAT32, 2, kShape},
                                                  {"bias", 7, HIPRESS_FLOAT32},
                                                  {"half", 33, HIPRESS_FLOAT16}};

static int rank_of_this;

static void require(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "rank %d: %s (last error: %s)\n", rank_of_this, what, hipress_last_error());
  _exit(1);
}

/* 1.0 to 4.0 in fp16. */
static const uint16_t kHalves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};

static hipress_engine* open_engine(const char* rendezvous) {
  hipress_options options;
  hipress_options_init(&options);
  options.rank = rank_of_this;
  options.ranks = kRanks;
  options.rendezvous = rendezvous;
  options.timeout_s = 10;
  hipress_engine* engine = NULL;
  require(hipress_open(&options, kAll, kGradients, &engine) == HIPRESS_OK, "open");
  return engine;
}

/* Rank r submits i + 2r, so the mean is i + 1. In fp16, it submits 1 + 2r, so the mean is 2. */
static void average(hipress_engine* engine) {
  float weight[1000], bias[7];
  uint16_t half[33];
  for (int i = 0; i < 1000; ++i) weight[i] = (float)(i + 2 * rank_of_this);
  for (int i = 0; i < 7; ++i) bias[i] = (float)(i + 2 * rank_of_this);
  for (int i = 0; i < 33; ++i) half[i] = kHalves[1 + 2 * rank_of_this];
  const hipress_tensor tensors[kGradients] = {
      {weight, 1000, HIPRESS_FLOAT32}, {bias, 7, HIPRESS_FLOAT32}, {half, 33, HIPRESS_FLOAT16}};
  hipress_work* works[kGradients];
  for (int k = 0; k < kGradients; ++k) { /* the ranks' orders differ */
    const uint32_t g = (uint32_t)(rank_of_this == 0 ? k : kGradients - 1 - k);
    require(hipress_submit(engine, g, &tensors[g], &works[g]) == HIPRESS_OK, "submit");
  }
  for (int g = 0; g < kGradients; ++g) require(hipress_wait(works[g]) == HIPRESS_OK, "wait");
  for (int i = 0; i < 1000; ++i) require(weight[i] == (float)(i + 1), "a weight is wrong");
  for (int i = 0; i < 7; ++i) require(bias[i] == (float)(i + 1), "a bias is wrong");
  for (int i = 0; i < 33; ++i) require(half[i] == kHalves[2], "a half is wrong");
}

static void refuse_wrong_tensor(hipress_engine* engine) {
  float values[8] = {0};
  const hipress_tensor tensor = {values, 8, HIPRESS_FLOAT32};
  hipress_work* work = NULL;
  require(hipress_submit(engine, 1, &tensor, &work) == HIPRESS_INVALID && work == NULL,
          "a tensor of another length is taken");
  require(strstr(hipress_last_error(), "bias") != NULL, "the error does not name the gradient");
}

/* Expects an error that names rank 1, which was killed. */
static void lose_rank_1(hipress_engine* engine) {
  float bias[7] = {0};
  const hipress_tensor tensor = {bias, 7, HIPRESS_FLOAT32};
  hipress_work* work = NULL;
  hipress_status status = hipress_submit(engine, 1, &tensor, &work);
  if (status == HIPRESS_OK) status = hipress_wait(work);
  require(status == HIPRESS_LOST && hipress_culprit() == 1, "the rank that died is not named");
  require(strstr(hipress_last_error(), "rank 1") != NULL, "the error does not name rank 1");
}

/* Runs one rank. `other` is rank 1's process, which rank 0 kills. */
static int run(int rank, const char* rendezvous, pid_t other) {
  rank_of_this = rank;
  hipress_engine* const engine = open_engine(rendezvous);
  for (int i = 0; i < kIterations; ++i) average(engine);
  refuse_wrong_tensor(engine);
  if (rank == 1) {
    for (;;) pause(); /* waits to be killed */
  }
  require(kill(other, SIGKILL) == 0, "kill");
  lose_rank_1(engine);
  hipress_close(engine);
  return 0;
}

int main(void) {
  char folder[] = "/tmp/hipress-average-XXXXXX";
  char rendezvous[64];
  require(mkdtemp(folder) != NULL, "mkdtemp");
  snprintf(rendezvous, sizeof rendezvous, "file://%s", folder);
  const pid_t child = fork();
  if (child == 0) return run(1, rendezvous, 0);
  require(child > 0, "fork");
  const int status = run(0, rendezvous, child);
  int ended = 0;
  require(waitpid(child, &ended, 0) == child, "waitpid");
  const int was_killed = WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL;
  if (status == 0 && was_killed) printf("averaged\n");
  return status != 0 || !was_killed;
}
