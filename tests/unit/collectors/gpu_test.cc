// GPUs: NVIDIA's through a stand-in for its library, AMD's through a written sysfs.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/collectors/fake_nvml.h"
#include "tests/unit/collectors/fake_tree.h"

namespace tocsin::collectors {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using namespace std::chrono_literals;

constexpr double kGiB = 1 << 30;

/// A machine with GPUs of NVIDIA's, which the test says.
class GpuCollector : public ::testing::Test {
 protected:
  GpuCollector() : handle_(::dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL)) {
    const auto state = reinterpret_cast<FakeNvml* (*)()>(::dlsym(handle_, "fake_nvml"));
    nvml_ = state();
    *nvml_ = {};
  }
  ~GpuCollector() override { ::dlclose(handle_); }

  FakeGpu& plug(const char* uuid) {
    FakeGpu& gpu = nvml_->gpu[nvml_->devices++];
    std::strcpy(gpu.uuid, uuid);
    gpu.total = 80ULL << 30;
    return gpu;
  }
  [[nodiscard]] OneCollector collector(const std::string& more = "") const {
    return {"gpu", tree_.roots(), "{library: " FAKE_NVML + more + "}"};
  }

  FakeTree tree_;
  FakeNvml* nvml_ = nullptr;

 private:
  void* handle_;
};

TEST_F(GpuCollector, SaysHowBusyAndHowFullEachIs) {
  FakeGpu& a = plug("GPU-a");
  a.busy = 97;
  a.used = 20ULL << 30;
  a.milliwatts = 401'500;
  a.milliwatts_limit = 700'000;
  a.celsius = 64;
  a.corrected = 3;
  plug("GPU-b").busy = 100;
  OneCollector gpu = collector();
  ASSERT_TRUE(gpu.sweep());
  EXPECT_DOUBLE_EQ(gpu.values["hw.gpu.utilization{hw.id=GPU-a}"], 0.97);
  EXPECT_DOUBLE_EQ(gpu.values["hw.gpu.utilization{hw.id=GPU-b}"], 1);
  EXPECT_DOUBLE_EQ(gpu.values["hw.gpu.memory.usage{hw.id=GPU-a}"], 20 * kGiB);
  EXPECT_DOUBLE_EQ(gpu.values["hw.gpu.memory.limit{hw.id=GPU-a}"], 80 * kGiB);
  EXPECT_DOUBLE_EQ(gpu.values["hw.gpu.memory.utilization{hw.id=GPU-a}"], 0.25);
  EXPECT_DOUBLE_EQ(gpu.values["hw.power{hw.id=GPU-a,hw.type=gpu}"], 401.5);
  EXPECT_DOUBLE_EQ(gpu.values["tocsin.gpu.power.limit{hw.id=GPU-a}"], 700);
  EXPECT_DOUBLE_EQ(gpu.values["hw.temperature{hw.id=GPU-a,hw.type=gpu}"], 64);
  EXPECT_DOUBLE_EQ(gpu.counters["hw.errors{error.type=corrected,hw.id=GPU-a,hw.type=gpu}"], 3);
  EXPECT_DOUBLE_EQ(gpu.counters["hw.errors{error.type=uncorrected,hw.id=GPU-a,hw.type=gpu}"], 0);
  EXPECT_DOUBLE_EQ(gpu.values["hw.status{hw.id=GPU-a,hw.state=failed,hw.type=gpu}"], 0);
}

TEST_F(GpuCollector, SaysWhyTheClocksAreLow) {
  FakeGpu& a = plug("GPU-a");
  const auto throttled = [&](unsigned long long bits) {
    a.throttled = bits;
    OneCollector gpu = collector();
    EXPECT_TRUE(gpu.sweep());
    std::string out;
    for (const char* reason : {"power", "thermal", "hardware"}) {
      if (gpu.values["tocsin.gpu.throttled{hw.id=GPU-a,reason=" + std::string(reason) + "}"] == 1) {
        out += std::string(reason) + " ";
      }
    }
    return out;
  };
  EXPECT_EQ(throttled(0x1), "") << "idle is no reason to worry";
  EXPECT_EQ(throttled(0x4), "power ");
  EXPECT_EQ(throttled(0x20), "thermal ");
  EXPECT_EQ(throttled(0x40 | 0x8), "thermal hardware ");
  EXPECT_EQ(throttled(0x80), "hardware ");
}

TEST_F(GpuCollector, ReadsWhatIsDearLessOften) {
  plug("GPU-a");
  OneCollector gpu = collector(", details: 2s, processes: 4s");
  gpu->watch_process(77);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(gpu.sweep(1s));
  EXPECT_EQ(nvml_->utilization_calls, 8U);
  EXPECT_EQ(nvml_->power_calls, 4U);
  EXPECT_EQ(nvml_->process_calls, 2U);
  OneCollector never = collector(", details: 0s, processes: 0s");
  never->watch_process(77);
  ASSERT_TRUE(never.sweep());
  EXPECT_EQ(nvml_->power_calls, 4U);
  EXPECT_EQ(nvml_->process_calls, 2U);
}

TEST_F(GpuCollector, MemoryOfWatchedProcessesOnly) {
  FakeGpu& a = plug("GPU-a");
  a.processes = kFakeProcesses;  // more than there is room for at first
  for (unsigned i = 0; i < a.processes; ++i) {
    a.process[i].pid = 1000 + i;
    a.process[i].used = (i + 1ULL) << 30;
  }
  a.process[5].used = ~0ULL;  // not known
  OneCollector gpu = collector();
  ASSERT_TRUE(gpu.sweep());
  EXPECT_EQ(nvml_->process_calls, 0U) << "nobody is watched";
  gpu->watch_process(1099);
  gpu->watch_process(1005);
  gpu->watch_process(4711);  // not on a GPU
  ASSERT_TRUE(gpu.sweep());
  EXPECT_DOUBLE_EQ(gpu.values["tocsin.gpu.process.memory{hw.id=GPU-a,process.pid=1099}"],
                   100 * kGiB);
  EXPECT_THAT(gpu.values, Not(Contains(Key(HasSubstr("process.pid=1005")))));
  EXPECT_THAT(gpu.values, Not(Contains(Key(HasSubstr("process.pid=4711")))));
  EXPECT_THAT(gpu.values, Not(Contains(Key(HasSubstr("process.pid=1000")))));
  gpu->forget_process(1099);
  ASSERT_TRUE(gpu.sweep(10s));
  EXPECT_THAT(gpu.values, Not(Contains(Key(HasSubstr("process.pid=1099")))));
}

TEST_F(GpuCollector, InstancesHaveMemoryOfTheirOwn) {
  FakeGpu& a = plug("GPU-a");
  a.no_utilization = 1;  // as the driver answers once a GPU is divided
  a.instances = 2;
  std::strcpy(a.instance[0].uuid, "MIG-1");
  std::strcpy(a.instance[1].uuid, "MIG-2");
  a.instance[0].total = a.instance[1].total = 40ULL << 30;
  a.instance[1].used = 10ULL << 30;
  OneCollector gpu = collector();
  ASSERT_TRUE(gpu.sweep());
  EXPECT_THAT(gpu.values, Not(Contains(Key(HasSubstr("hw.gpu.utilization")))));
  EXPECT_DOUBLE_EQ(gpu.values["hw.gpu.memory.utilization{hw.id=MIG-2}"], 0.25);
  EXPECT_DOUBLE_EQ(gpu.values["hw.gpu.memory.usage{hw.id=MIG-1}"], 0);
  EXPECT_EQ(gpu.counters["tocsin.gpu.unreadable{hw.id=GPU-a}"], 0) << "not offered is no failure";
  EXPECT_THAT(gpu.values, Not(Contains(Key(HasSubstr("hw.status{hw.id=MIG")))));
  a.instances = 1;  // its administrator has taken one away
  ASSERT_TRUE(gpu.sweep(61s));
  EXPECT_THAT(gpu.values, Not(Contains(Key(HasSubstr("MIG-2")))));
  EXPECT_THAT(gpu.values, Contains(Key(HasSubstr("MIG-1"))));
}

TEST_F(GpuCollector, AGpuThatIsLostIsToldAndSilencesNobody) {
  FakeGpu& a = plug("GPU-a");
  plug("GPU-b").busy = 50;
  OneCollector gpu = collector();
  ASSERT_TRUE(gpu.sweep());
  const std::string failed = "hw.status{hw.id=GPU-a,hw.state=failed,hw.type=gpu}";
  EXPECT_EQ(gpu.values[failed], 0);
  a.code = 15;  // GPU is lost
  ASSERT_TRUE(gpu.sweep());
  EXPECT_EQ(gpu.values[failed], 1);
  EXPECT_THAT(gpu.values, Not(Contains(Key("hw.gpu.utilization{hw.id=GPU-a}"))));
  EXPECT_DOUBLE_EQ(gpu.values["hw.gpu.utilization{hw.id=GPU-b}"], 0.5);
  ASSERT_TRUE(gpu.sweep(61s));  // looked for again
  EXPECT_EQ(gpu.values[failed], 1);
  EXPECT_GE(gpu.counters["tocsin.gpu.unreadable{hw.id=GPU-a}"], 1);
  a.code = 0;
  ASSERT_TRUE(gpu.sweep(61s));
  EXPECT_EQ(gpu.values[failed], 0);
  EXPECT_THAT(gpu.values, Contains(Key("hw.gpu.utilization{hw.id=GPU-a}")));
}

TEST_F(GpuCollector, CountsXidsAndNamesTheNewest) {
  plug("GPU-a");
  plug("GPU-b");
  OneCollector gpu = collector();
  const std::string count = "hw.errors{error.type=xid,hw.id=GPU-b,hw.type=gpu}";
  ASSERT_TRUE(gpu.sweep());
  EXPECT_EQ(gpu.counters.at(count), 0);
  nvml_->events = 2;  // taken from the end
  nvml_->event[1] = {1, 31};
  nvml_->event[0] = {1, 79};
  ASSERT_TRUE(gpu.sweep(1s));
  EXPECT_EQ(gpu.counters.at(count), 2);
  EXPECT_EQ(gpu.values.at("tocsin.gpu.xid{hw.id=GPU-b}"), 79);
  EXPECT_EQ(gpu.counters.at("hw.errors{error.type=xid,hw.id=GPU-a,hw.type=gpu}"), 0);
  ASSERT_TRUE(gpu.sweep(1s));
  EXPECT_EQ(gpu.counters.at(count), 2);
  EXPECT_THAT(gpu.values, Not(Contains(Key(HasSubstr("tocsin.gpu.xid")))));
}

TEST_F(GpuCollector, ABoardWithoutEccSaysNothingOfIt) {
  plug("GPU-a").corrected = ~0ULL;
  OneCollector gpu = collector();
  ASSERT_TRUE(gpu.sweep());
  EXPECT_THAT(gpu.counters, Not(Contains(Key(HasSubstr("corrected")))));
  EXPECT_EQ(gpu.counters["tocsin.gpu.unreadable{hw.id=GPU-a}"], 0);
}

TEST_F(GpuCollector, ADriverThatGoesIsBegunAgain) {
  plug("GPU-a");
  OneCollector gpu = collector();
  ASSERT_TRUE(gpu.sweep());
  nvml_->count_code = 999;
  EXPECT_EQ(gpu.sweep(61s).error().code, core::Code::unavailable);
  EXPECT_EQ(nvml_->shutdowns, 1U);
  nvml_->count_code = 0;
  EXPECT_FALSE(gpu.sweep(1s)) << "tried again once a minute";
  ASSERT_TRUE(gpu.sweep(61s));
  EXPECT_EQ(nvml_->inits, 2U);
  EXPECT_THAT(gpu.counters, Contains(Key(HasSubstr("error.type=xid")))) << "listens again";
}

TEST_F(GpuCollector, SaysInTheLibrarysWordsWhyItWouldNotBegin) {
  nvml_->init_code = 18;
  OneCollector gpu = collector();
  const auto status = gpu.sweep();
  EXPECT_EQ(status.error().code, core::Code::unavailable);
  EXPECT_THAT(status.error().message, HasSubstr("Driver/library version mismatch"));
  nvml_->init_code = 9;  // a library without a driver: a machine without GPUs
  EXPECT_EQ(collector().sweep().error().code, core::Code::not_found);
}

TEST_F(GpuCollector, AMachineWithoutTheLibraryHasNone) {
  OneCollector gpu("gpu", tree_.roots(), "{library: /nowhere/libnvidia-ml.so.1}");
  EXPECT_EQ(gpu.sweep().error().code, core::Code::not_found);
  OneCollector other("gpu", tree_.roots(), "{library: libdl.so.2}");
  EXPECT_FALSE(other.sweep()) << "a library, but not that one";
}

void write_card(const FakeTree& tree, const std::string& name, const std::string& busy) {
  const std::string device = "sys/class/drm/" + name + "/device/";
  tree.write(device + "gpu_busy_percent", busy);
  tree.write(device + "mem_info_vram_used", "1073741824\n");
  tree.write(device + "mem_info_vram_total", "4294967296\n");
}

TEST(AmdGpu, IsReadFromSysfsWithoutALibrary) {
  const FakeTree tree;
  write_card(tree, "card1", "42\n");
  tree.write("sys/class/drm/card1/device/unique_id", "86e5ea4adc4a4d3f\n");
  tree.write("sys/class/drm/card1/device/hwmon/hwmon3/power1_average", "211000000\n");
  tree.write("sys/class/drm/card1/device/hwmon/hwmon3/temp1_input", "61000\n");
  write_card(tree, "card0", "7\n");
  tree.write("sys/class/drm/card0/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n");
  tree.write("sys/class/drm/card0-DP-1/status", "connected\n");
  tree.write("sys/class/drm/card2/device/vendor", "0x8086\n");  // another driver's
  OneCollector gpu("gpu", tree.roots(), "{library: /nowhere/libnvidia-ml.so.1}");
  ASSERT_TRUE(gpu.sweep());
  EXPECT_DOUBLE_EQ(gpu.values["hw.gpu.utilization{hw.id=AMD-86e5ea4adc4a4d3f}"], 0.42);
  EXPECT_DOUBLE_EQ(gpu.values["hw.gpu.utilization{hw.id=AMD-0000:03:00.0}"], 0.07);
  EXPECT_DOUBLE_EQ(gpu.values["hw.gpu.memory.utilization{hw.id=AMD-0000:03:00.0}"], 0.25);
  EXPECT_DOUBLE_EQ(gpu.values["hw.power{hw.id=AMD-86e5ea4adc4a4d3f,hw.type=gpu}"], 211);
  EXPECT_DOUBLE_EQ(gpu.values["hw.temperature{hw.id=AMD-86e5ea4adc4a4d3f,hw.type=gpu}"], 61);
  EXPECT_THAT(gpu.values, Not(Contains(Key(HasSubstr("hw.power{hw.id=AMD-0000")))));
  tree.remove("sys/class/drm/card1");
  ASSERT_TRUE(gpu.sweep(61s));
  EXPECT_THAT(gpu.values, Not(Contains(Key(HasSubstr("86e5ea4adc4a4d3f")))));
}

}  // namespace
}  // namespace tocsin::collectors
