// Stops by scancel and squeue of this machine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "actions/platform/fixed_program.h"
#include "actions/platform/scancel.h"
#include "core/system_clock.h"
#include "tests/unit/actions/platforms.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using namespace testing_support;

const char* const kSqueueLine =
    "/usr/bin/squeue --noheader --states=all --jobs=77 "
    "--Format=JobID:|,State:|,RestartCnt:|,StartTime:|";

std::string squeue_line(const std::string& state, int restarts = 1,
                        std::int64_t start = 1'767'323'000) {
  return "77|" + state + "|" + std::to_string(restarts) + "|" + std::to_string(start) + "|\n";
}

struct ScriptedPrograms {
  std::vector<std::string> ran;
  std::vector<std::vector<std::pair<std::string, std::string>>> environments;
  std::deque<core::Result<ProgramResult>> answers;
};

class ScriptedProgram final : public FixedProgram {
 public:
  explicit ScriptedProgram(ScriptedPrograms& script) : script_(script) {}
  core::Result<ProgramResult> run(const ProgramCall& call, std::chrono::milliseconds) override {
    std::string line;
    for (const std::string& word : call.arguments) line += (line.empty() ? "" : " ") + word;
    script_.ran.push_back(line);
    script_.environments.push_back(call.environment);
    if (script_.answers.empty()) throw std::runtime_error("not expected: " + line);
    auto out = script_.answers.front();
    script_.answers.pop_front();
    return out;
  }

 private:
  ScriptedPrograms& script_;
};

struct ScancelBench {
  explicit ScancelBench(ScancelConfig cfg = {}) {
    platform = make_scancel(cfg, clock, std::make_unique<ScriptedProgram>(script));
  }
  void prints(const std::string& output) { script.answers.push_back(ProgramResult{0, output, ""}); }
  void fails(const std::string& errors) { script.answers.push_back(ProgramResult{1, "", errors}); }
  PlatformAnswer carry_out(PlatformRung rung) {
    return platform->carry_out({fence, "stop"}, rung, 10s);
  }

  ManualClock clock;
  ScriptedPrograms script;
  std::unique_ptr<PlatformStop> platform;
  core::Value fence = core::ValueMap{{"platform", "slurm"},
                                     {"job_id", "77"},
                                     {"restart_cnt", 1},
                                     {"start_time", std::int64_t{1'767'323'000}}};
};

TEST(ScancelStop, CancelsTheJobAndReadsItAgain) {
  ScancelBench bench;
  bench.prints(squeue_line("RUNNING"));
  bench.prints("");
  bench.prints(squeue_line("COMPLETING"));
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::running) << answer.detail;
  EXPECT_TRUE(answer.asked);
  EXPECT_THAT(bench.script.ran, ElementsAre(kSqueueLine, "/usr/bin/scancel 77", kSqueueLine));
  EXPECT_THAT(bench.script.environments[0],
              ElementsAre(Pair("PATH", "/usr/bin:/bin"), Pair("LC_ALL", "C"),
                          Pair("SLURM_TIME_FORMAT", "%s")));
}

TEST(ScancelStop, ACancelledJobIsNotCancelledAgainAndItsEndIsTheProof) {
  ScancelBench bench;
  bench.prints(squeue_line("COMPLETING"));
  EXPECT_EQ(bench.carry_out(PlatformRung::graceful).seen, PlatformSeen::running);
  EXPECT_EQ(bench.script.ran.size(), 1U);
  bench.prints(squeue_line("CANCELLED"));
  EXPECT_EQ(bench.carry_out(PlatformRung::look).seen, PlatformSeen::ended);
  bench.fails("slurm_load_jobs error: Invalid job id specified\n");
  EXPECT_EQ(bench.carry_out(PlatformRung::look).seen, PlatformSeen::ended) << "purged";
}

TEST(ScancelStop, AnotherStartOfTheSameIdIsLeftAlone) {
  for (const std::string& other :
       {squeue_line("RUNNING", 2), squeue_line("RUNNING", 1, 1'767'399'000)}) {
    ScancelBench bench;
    bench.prints(other);
    EXPECT_EQ(bench.carry_out(PlatformRung::graceful).seen, PlatformSeen::stale) << other;
    EXPECT_EQ(bench.script.ran.size(), 1U);
  }
}

TEST(ScancelStop, WhatHappenedInBetweenIsTold) {
  ScancelBench bench;
  bench.prints(squeue_line("RUNNING"));
  bench.prints("");
  bench.prints(squeue_line("PENDING", 2));
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::stale);
  EXPECT_THAT(answer.detail, HasSubstr("it was replaced meanwhile"));
}

// With PrivateData=jobs a user sees an empty list, which is no end.
TEST(ScancelStop, NothingShownIsNoEnd) {
  ScancelBench bench;
  bench.prints("");
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::denied);
  EXPECT_THAT(answer.detail, HasSubstr("may this user see jobs of others?"));
  EXPECT_EQ(bench.script.ran.size(), 1U);
}

TEST(ScancelStop, ErrorsAreToldApart) {
  ScancelBench away;
  away.fails("slurm_load_jobs error: Unable to contact slurm controller (connect failure)");
  EXPECT_EQ(away.carry_out(PlatformRung::graceful).seen, PlatformSeen::unreachable);
  ScancelBench denied;
  denied.prints(squeue_line("RUNNING"));
  denied.fails("scancel: error: Kill job error on job id 77: Access/permission denied");
  denied.prints(squeue_line("RUNNING"));
  const auto refused = denied.carry_out(PlatformRung::graceful);
  EXPECT_EQ(refused.seen, PlatformSeen::denied);
  EXPECT_THAT(refused.detail, HasSubstr("Access/permission denied"));
  ScancelBench done;
  done.prints(squeue_line("RUNNING"));
  done.fails("scancel: error: Kill job error on job id 77: Job/step already completed");
  done.prints(squeue_line("COMPLETED"));
  EXPECT_EQ(done.carry_out(PlatformRung::graceful).seen, PlatformSeen::ended);
  ScancelBench absent;
  absent.script.answers.emplace_back(core::Error{core::Code::not_found, "/usr/bin/squeue: no"});
  EXPECT_EQ(absent.carry_out(PlatformRung::graceful).seen, PlatformSeen::denied);
}

TEST(ScancelStop, ASignalComesFirstAndTheCancelIsTheHarderRung) {
  ScancelConfig cfg;
  cfg.signal = "USR1";
  ScancelBench bench(cfg);
  bench.prints(squeue_line("RUNNING"));
  bench.prints("");
  bench.prints(squeue_line("RUNNING"));
  EXPECT_TRUE(bench.carry_out(PlatformRung::graceful).asked);
  EXPECT_EQ(bench.script.ran.at(1), "/usr/bin/scancel --signal=USR1 --full 77");
  bench.prints(squeue_line("RUNNING"));
  bench.prints("");
  bench.prints(squeue_line("CANCELLED"));
  EXPECT_EQ(bench.carry_out(PlatformRung::force).seen, PlatformSeen::ended);
  EXPECT_EQ(bench.script.ran.at(4), "/usr/bin/scancel 77");
}

TEST(ScancelStop, ItsKeysAreChecked) {
  EXPECT_EQ(PlatformBench("{scancel: {}}").errors, "");
  EXPECT_THAT(PlatformBench("{scancel: {scancel: scancel}}").errors, HasSubstr("an absolute path"));
  EXPECT_THAT(PlatformBench("{scancel: {squeue: '/usr/bin/../squeue'}}").errors,
              HasSubstr("an absolute path"));
  EXPECT_THAT(PlatformBench("{scancel: {signal: 'USR1 --all'}}").errors, HasSubstr("USR1"));
  EXPECT_THAT(PlatformBench("{scancel: {}, slurm: {url: 'https://s.example', token: t}}").errors,
              HasSubstr("both end the same jobs"));
}

// ---- the programs of this machine

class LocalPrograms : public testing::Test {
 protected:
  LocalPrograms() {
    std::string form = "/tmp/tocsin-program-XXXXXX";
    if (mkdtemp(form.data()) == nullptr) throw std::runtime_error("no directory");
    folder_ = form;
    program_ = local_program(clock_);
  }
  ~LocalPrograms() override {
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(folder_.c_str());
  }
  std::string script(const std::string& text, mode_t mode = 0755) {
    const std::string path = folder_ + "/" + std::to_string(files_.size());
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    chmod(path.c_str(), mode);
    files_.push_back(path);
    return path;
  }
  core::Result<ProgramResult> run(std::vector<std::string> words,
                                  std::chrono::milliseconds budget = 10s) {
    return program_->run({std::move(words), {{"ONLY", "this"}}}, budget);
  }

  core::SystemClock clock_;
  std::string folder_;
  std::vector<std::string> files_;
  std::unique_ptr<FixedProgram> program_;
};

TEST_F(LocalPrograms, ArgumentsReachTheProgramAsTheyAre) {
  const auto done =
      run({script("printf '[%s]' \"$@\"; printf 'oh' >&2; exit 3"), "a b", "$(id)", ";x"});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->output, "[a b][$(id)][;x]");
  EXPECT_EQ(done->errors, "oh");
  EXPECT_EQ(done->code, 3);
}

TEST_F(LocalPrograms, NothingOfThisProcessIsInherited) {
  const int open_here = open("/etc/hostname", O_RDONLY);  // no O_CLOEXEC
  setenv("TOCSIN_SECRET_OF_A_TEST", "canary", 1);
  const auto done = run({script("env; echo $0 >&2; ls -l /proc/self/fd | grep -c hostname")});
  close(open_here);
  ASSERT_TRUE(done);
  EXPECT_THAT(done->output, HasSubstr("ONLY=this"));
  EXPECT_EQ(done->output.find("canary"), std::string::npos);
  EXPECT_THAT(done->output, ::testing::EndsWith("\n0\n"));
}

TEST_F(LocalPrograms, WhatHangsIsKilledWithWhatItStarted) {
  const std::string mark = folder_ + "/mark";
  const auto began = clock_.monotonic();
  const auto done = run({script("(sleep 2; touch " + mark + ") & sleep 60")}, 200ms);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, core::Code::deadline_exceeded);
  const auto closed = run({script("exec >&- 2>&-; sleep 60")}, 200ms);
  ASSERT_FALSE(closed) << "closed what it writes to, and goes on";
  EXPECT_LT(clock_.monotonic() - began, 1900ms);
  while (clock_.monotonic() - began < 2500ms) usleep(10'000);
  EXPECT_NE(access(mark.c_str(), F_OK), 0);
}

TEST_F(LocalPrograms, MuchOutputIsCut) {
  const auto done = run({script("head -c 1000000 /dev/zero | tr '\\0' x")});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->output.size(), 64U * 1024);
  EXPECT_EQ(done->code, 0);
}

TEST_F(LocalPrograms, WhatEverybodyMayWriteIsNotRun) {
  EXPECT_EQ(run({script("true", 0777)}).error().code, core::Code::permission_denied);
  EXPECT_EQ(run({script("true", 0644)}).error().code, core::Code::permission_denied);
  EXPECT_EQ(run({folder_ + "/absent"}).error().code, core::Code::not_found);
  EXPECT_EQ(run({"true"}).error().code, core::Code::permission_denied);
  EXPECT_EQ(run({folder_}).error().code, core::Code::permission_denied);
}

}  // namespace
}  // namespace tocsin::actions
