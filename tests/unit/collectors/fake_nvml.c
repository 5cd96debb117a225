/* Stands in for NVIDIA's management library, in the form that its API reference gives. Written apart from
 * collectors/node/nvml.h, so that the two have to agree. */
#include "tests/unit/collectors/fake_nvml.h"

#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef int nvmlReturn_t;
typedef void* nvmlDevice_t;
typedef void* nvmlEventSet_t;
typedef struct {
  unsigned int gpu, memory;
} nvmlUtilization_t;
typedef struct {
  unsigned long long total, free, used;
} nvmlMemory_t;
typedef struct {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;
typedef struct {
  nvmlDevice_t device;
  unsigned long long eventType, eventData;
  unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMEOUT = 10 };

static struct FakeNvml state;
static int events_of[kFakeDevices];

EXPORT struct FakeNvml* fake_nvml(void) { return &state; }

/* A handle points at a GPU, or at one of its instances. */
static struct FakeGpu* gpu_of(nvmlDevice_t handle) {
  for (unsigned i = 0; i < kFakeDevices; ++i) {
    if (handle == (void*)&state.gpu[i]) return &state.gpu[i];
  }
  return NULL;
}

static int instance_of(nvmlDevice_t handle, struct FakeGpu** gpu) {
  for (unsigned i = 0; i < kFakeDevices; ++i) {
    for (unsigned k = 0; k < kFakeInstances; ++k) {
      if (handle != (void*)&state.gpu[i].instance[k]) continue;
      *gpu = &state.gpu[i];
      return (int)k;
    }
  }
  return -1;
}

EXPORT nvmlReturn_t nvmlInit_v2(void) {
  ++state.inits;
  memset(events_of, 0, sizeof events_of);
  return state.init_code;
}
EXPORT nvmlReturn_t nvmlShutdown(void) {
  ++state.shutdowns;
  return SUCCESS;
}
EXPORT const char* nvmlErrorString(nvmlReturn_t code) {
  return code == 18 ? "Driver/library version mismatch" : code == 9 ? "Driver Not Loaded" : "Unknown Error";
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = state.devices;
  return state.count_code;
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* out) {
  if (index >= state.devices) return INVALID;
  *out = &state.gpu[index];
  return state.gpu[index].code;
}
EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* out, unsigned int length) {
  struct FakeGpu* gpu = gpu_of(device);
  int instance = -1;
  if (gpu == NULL) instance = instance_of(device, &gpu);
  if (gpu == NULL) return INVALID;
  snprintf(out, length, "%s", instance < 0 ? gpu->uuid : gpu->instance[instance].uuid);
  return gpu->code;
}
EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* out) {
  struct FakeGpu* gpu = gpu_of(device);
  ++state.utilization_calls;
  if (gpu == NULL || gpu->no_utilization) return NOT_SUPPORTED;
  out->gpu = gpu->busy;
  return gpu->code;
}
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* out) {
  struct FakeGpu* gpu = gpu_of(device);
  int instance = -1;
  if (gpu == NULL) instance = instance_of(device, &gpu);
  if (gpu == NULL) return INVALID;
  out->total = instance < 0 ? gpu->total : gpu->instance[instance].total;
  out->used = instance < 0 ? gpu->used : gpu->instance[instance].used;
  out->free = out->total - out->used;
  return gpu->code;
}
EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* out) {
  ++state.power_calls;
  *out = gpu_of(device)->milliwatts;
  return gpu_of(device)->code;
}
EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int* out) {
  *out = gpu_of(device)->milliwatts_limit;
  return gpu_of(device)->code;
}
EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int* out) {
  if (sensor != 0) return INVALID;
  *out = gpu_of(device)->celsius;
  return gpu_of(device)->code;
}
/* An older driver: the name with "Event" is not there. */
EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long* out) {
  *out = gpu_of(device)->throttled;
  return gpu_of(device)->code;
}
EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int type, int counter, unsigned long long* out) {
  if (counter != 1) return INVALID;
  if (gpu_of(device)->corrected == ~0ULL) return NOT_SUPPORTED; /* a board without ECC */
  *out = type == 0 ? gpu_of(device)->corrected : gpu_of(device)->uncorrected;
  return gpu_of(device)->code;
}
EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* now, unsigned int* pending) {
  *now = *pending = gpu_of(device)->instances > 0;
  return gpu_of(device)->code;
}
EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* out) {
  *out = 7;
  return gpu_of(device)->code;
}
EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t* out) {
  struct FakeGpu* gpu = gpu_of(device);
  if (index >= gpu->instances) return NOT_FOUND;
  *out = &gpu->instance[index];
  return gpu->code;
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                            nvmlProcessInfo_t* out) {
  struct FakeGpu* gpu = gpu_of(device);
  ++state.process_calls;
  if (gpu == NULL) return NOT_SUPPORTED;
  const unsigned room = *count;
  *count = gpu->processes;
  if (room < gpu->processes) return TOO_SMALL;
  for (unsigned i = 0; i < gpu->processes; ++i) {
    out[i] = (nvmlProcessInfo_t){gpu->process[i].pid, gpu->process[i].used, ~0U, ~0U};
  }
  return gpu->code;
}
EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* out) {
  *out = events_of;
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) { return set == events_of ? SUCCESS : INVALID; }
EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
  if (set != events_of || types != 8) return INVALID;
  events_of[gpu_of(device) - state.gpu] = 1;
  return SUCCESS;
}
EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* out, unsigned int milliseconds) {
  if (set != events_of || milliseconds != 0) return INVALID; /* a sweep waits for nothing */
  if (state.events == 0) return TIMEOUT;
  --state.events;
  if (!events_of[state.event[state.events].device]) return TIMEOUT;
  *out = (nvmlEventData_t){&state.gpu[state.event[state.events].device], 8, state.event[state.events].number, ~0U, ~0U};
  return SUCCESS;
}
