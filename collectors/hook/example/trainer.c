/* A trainer in C that is watched: a linear model, fitted by gradient descent. It is C99 and C++ alike.
 *
 *   cc trainer.c -ltocsin_client -lm -o trainer
 *   ./trainer [LEARNING_RATE [STEPS]]        0.05 learns; 2 grows without bound, and a rule sees it
 *
 * Where its telemetry goes is said from outside: TOCSIN_OUT=./run1, TOCSIN_BROKERS=host:9092, a configuration in
 * TOCSIN_CONFIG; by default ./tocsin-data. Without a place that can be used, and with TOCSIN_DISABLED=1, it trains all the
 * same: every call takes a null client. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tocsin_client.h"

enum { INPUTS = 4, SAMPLES = 64, F32 = 1, EXIT_STOPPED = 77 };

typedef struct {
  tocsin_client* client;
  uint64_t weight, gradient, loss;
} watched;

/* What went wrong is said once per place, and training goes on. */
static void check(int32_t result, const char* what) {
  if (result < 0) fprintf(stderr, "trainer: %s: %s\n", what, tocsin_last_error());
}

static uint64_t name_of(tocsin_client* client, int32_t type, const char* text) {
  const int64_t shape[1] = {INPUTS};
  tocsin_name_info info;
  uint64_t id = 0;
  memset(&info, 0, sizeof info);
  info.size = sizeof info;
  info.role = -1; /* by its name: weight, gradient/…, loss */
  if (type == TOCSIN_NAME_TENSOR) {
    info.dtype = F32;
    info.ndim = 1;
    info.dims = shape;
  }
  check(tocsin_name(client, type, text, strlen(text), &info, &id), text);
  return id;
}

static watched watch(void) {
  watched out;
  tocsin_options options;
  memset(&out, 0, sizeof out);
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.job = "linear";
  options.framework = "C";
  options.script = "trainer.c";
  options.rank = options.world_size = -1; /* of MPI, Slurm, torchrun, … where there is one */
  check(tocsin_open(&options, &out.client), "tocsin_open");
  out.weight = name_of(out.client, TOCSIN_NAME_TENSOR, "linear.weight");
  out.gradient = name_of(out.client, TOCSIN_NAME_TENSOR, "gradient/linear.weight");
  out.loss = name_of(out.client, TOCSIN_NAME_SCALAR, "loss");
  return out;
}

static tocsin_tensor lend(uint64_t id, const float* data) {
  static const int64_t shape[1] = {INPUTS};
  tocsin_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.size = sizeof tensor;
  tensor.id = id;
  tensor.data = data;
  tensor.shape = shape;
  tensor.ndim = 1;
  tensor.dtype = F32;
  return tensor;
}

/* Before the update. Tensors are read, and nothing of them is kept, before the call returns. */
static void tell(const watched* hook, const float* weight, const float* gradient, double loss) {
  check(tocsin_scalars(hook->client, &hook->loss, &loss, 1), "tocsin_scalars");
  if (tocsin_due(hook->client, 0) == TOCSIN_OK) {
    tocsin_tensor tensors[2];
    tensors[0] = lend(hook->weight, weight);
    tensors[1] = lend(hook->gradient, gradient);
    check(tocsin_tensors(hook->client, tensors, 2), "tocsin_tensors");
  }
}

/* One phase of the answer to a stop; `more` are further members of the object. */
static void answer(const watched* hook, const char* command_id, const char* phase,
                   const char* more) {
  char text[512];
  const int length =
      snprintf(text, sizeof text, "{\"command_id\":\"%s\",\"action\":\"stop\",\"phase\":\"%s\"%s}",
               command_id, phase, more);
  check(tocsin_ack(hook->client, text, (size_t)length), phase);
}

static long save(const char* path, const float* weight) {
  FILE* file = fopen(path, "wb");
  size_t written = 0;
  if (file == NULL) return -1;
  written = fwrite(weight, sizeof *weight, INPUTS, file);
  return fclose(file) == 0 && written == INPUTS ? (long)(INPUTS * sizeof *weight) : -1;
}

/* Leaves with a checkpoint; whoever waits for the answer is told how far it has come. */
static void stop(const watched* hook, const float* weight) {
  static const char kKey[] = "\"command_id\":\"";
  char command[4096] = "";
  char id[64] = "";
  char more[128] = "";
  size_t length = 0;
  const char* found = NULL;
  check(tocsin_command(hook->client, "stop", command, sizeof command - 1, &length),
        "tocsin_command");
  found = strstr(command, kKey);
  if (found != NULL) sscanf(found + strlen(kKey), "%63[^\"]", id);
  answer(hook, id, "accepted", "");
  answer(hook, id, "checkpointing", "");
  length = (size_t)save("checkpoint.bin", weight);
  snprintf(more, sizeof more, ",\"checkpoint\":{\"path\":\"checkpoint.bin\",\"bytes\":%ld}",
           (long)length);
  answer(hook, id, "checkpoint_done", more);
  answer(hook, id, "stopping", "");
  answer(hook, id, "stopped", ",\"exit_code\":77");
}

int main(int argc, char** argv) {
  const double rate = argc > 1 ? atof(argv[1]) : 0.05;
  const long steps = argc > 2 ? atol(argv[2]) : 2000;
  float weight[INPUTS] = {0};
  const watched hook = watch();
  int stopped = 0;
  long step = 0;
  unsigned random = 1;
  for (step = 0; step < steps && !stopped; ++step) {
    float gradient[INPUTS] = {0};
    double loss = 0;
    int sample, i;
    for (sample = 0; sample < SAMPLES; ++sample) {
      float x[INPUTS], error = 0;
      for (i = 0; i < INPUTS; ++i) {
        random = random * 1664525U + 1013904223U; /* Numerical Recipes */
        x[i] = (float)(random >> 8) / (float)(1 << 23) - 1;
        error += (weight[i] - (float)(i + 1)) * x[i]; /* to be learnt: 1, 2, 3, 4 */
      }
      loss += (double)error * error / SAMPLES;
      for (i = 0; i < INPUTS; ++i) gradient[i] += 2 * error * x[i] / SAMPLES;
    }
    tell(&hook, weight, gradient, loss);
    for (i = 0; i < INPUTS; ++i) weight[i] -= (float)rate * gradient[i];
    tocsin_step_end(hook.client, 0);
    /* Once per step, behind the update: two atomic operations. */
    stopped = (tocsin_stop_requested(hook.client) & TOCSIN_WANTS_STOP) != 0;
  }
  if (stopped) stop(&hook, weight);
  printf("%s after %ld steps: %g %g %g %g\n", stopped ? "stopped" : "done", step, weight[0],
         weight[1], weight[2], weight[3]);
  check(tocsin_close(hook.client, stopped ? "stopped_by_rule" : "completed", 5000), "tocsin_close");
  return stopped ? EXIT_STOPPED : 0;
}
