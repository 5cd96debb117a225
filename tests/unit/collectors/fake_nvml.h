/* What the stand-in for libnvidia-ml.so.1 answers: a test loads the same file and writes here. */
#ifndef TOCSIN_FAKE_NVML_H
#define TOCSIN_FAKE_NVML_H

#ifdef __cplusplus
extern "C" {
#endif

enum { kFakeDevices = 4, kFakeInstances = 2, kFakeProcesses = 100, kFakeEvents = 8 };

struct FakeGpu {
  char uuid[96];
  int code; /* of every reading: 0, or 15 when the GPU is lost */
  int no_utilization;
  unsigned busy;
  unsigned long long total, used;
  unsigned milliwatts, milliwatts_limit, celsius;
  unsigned long long throttled, corrected, uncorrected;
  unsigned instances; /* MIG; > 0: on */
  struct {
    char uuid[96];
    unsigned long long total, used;
  } instance[kFakeInstances];
  unsigned processes;
  struct {
    unsigned pid;
    unsigned long long used;
  } process[kFakeProcesses];
};

struct FakeNvml {
  int init_code;
  int count_code;
  unsigned devices;
  struct FakeGpu gpu[kFakeDevices];
  unsigned events; /* waiting XIDs */
  struct {
    unsigned device;
    unsigned long long number;
  } event[kFakeEvents];
  /* What was asked of it. */
  unsigned inits, shutdowns, utilization_calls, power_calls, process_calls;
};

/* The one in this process. */
struct FakeNvml* fake_nvml(void);

#ifdef __cplusplus
}
#endif

#endif
