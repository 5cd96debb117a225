// Reads       squeue --noheader --states=all --jobs=<id> --Format=JobID,State,RestartCnt,StartTime: state,
//             restarts, start as seconds since 1970 (SLURM_TIME_FORMAT=%s).
// Cancels     scancel <id>: SIGCONT and SIGTERM, SIGKILL after the cluster's KillWait. With `signal`
//             that signal goes to the batch script and all steps first, and the cancel is the harder rung.
// Fenced      by reading before and after: Slurm has no precondition, so what happens in between is said.
// Proof       a terminal state without COMPLETING, or "Invalid job id" (purged).
// Runs        two programs of configured absolute paths with the arguments above. No shell, and nothing of an
//             issue, a label or a run but the job's number.
// Source      scancel(1), squeue(1) of Slurm 22.05 … 24.11.
#include "actions/platform/scancel.h"

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "actions/platform/platform_fence.h"
#include "actions/platform/slurm_job.h"
#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

using core::Value;
using std::chrono::milliseconds;

// Each with a separator of its own: a field without one is cut at 20 characters and padded.
constexpr const char* kFields = "--Format=JobID:|,State:|,RestartCnt:|,StartTime:|";
constexpr std::size_t kFieldCount = 4;
constexpr std::string_view kNoSuchJob = "Invalid job id";

std::string without_spaces(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
  return text;
}

/// The line of this job as slurmrestd would tell it; nullopt: there is none.
std::optional<Value> squeue_job(const std::string& output, std::int64_t id) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, '|');) {
      fields.push_back(without_spaces(std::move(part)));
    }
    if (fields.size() < kFieldCount || fields[0] != std::to_string(id)) continue;
    return core::ValueMap{{"job_id", fields[0]},
                          {"job_state", fields[1]},
                          {"restart_cnt", fields[2]},
                          {"start_time", fields[3]}};
  }
  return std::nullopt;
}

class Scancel final : public PlatformStop {
 public:
  Scancel(const ScancelConfig& cfg, std::unique_ptr<FixedProgram> program)
      : cfg_(cfg), program_(std::move(program)) {}

  [[nodiscard]] std::string_view name() const override { return "scancel"; }
  [[nodiscard]] bool reaches(const Value& fence) const override {
    return slurm_reaches(fence, cfg_.cluster);
  }

  PlatformAnswer carry_out(const PlatformTarget& target, PlatformRung rung,
                           milliseconds budget) override {
    const std::int64_t id = slurm_job_id(target.fence);
    const Job before = read(id, target.fence, budget);
    if (before.over) return *before.over;
    // A job that was cancelled says so from then on, though its processes still end.
    const bool cancelled = before.state.has("COMPLETING") || before.state.has("CANCELLED");
    if (rung == PlatformRung::look || cancelled) {
      return {PlatformSeen::running, slurm_job_name(id) + " is " + before.state.text(), cancelled};
    }
    return cancel(id, signal_of(rung), target.fence, budget);
  }

 private:
  struct Job {
    SlurmJobState state;
    std::optional<PlatformAnswer> over;
  };

  [[nodiscard]] std::string signal_of(PlatformRung rung) const {
    if (rung == PlatformRung::graceful) return cfg_.signal;
    return cfg_.signal.empty() ? "KILL" : "";
  }

  [[nodiscard]] core::Result<ProgramResult> run(std::vector<std::string> arguments,
                                                milliseconds budget) {
    ProgramCall call{std::move(arguments),
                     {{"PATH", "/usr/bin:/bin"}, {"LC_ALL", "C"}, {"SLURM_TIME_FORMAT", "%s"}}};
    if (!cfg_.conf.empty()) call.environment.emplace_back("SLURM_CONF", cfg_.conf);
    const auto most = std::chrono::duration_cast<milliseconds>(cfg_.timeout);
    return program_->run(call, std::min(budget, most));
  }

  // It did not run: the next attempt tries again, unless waiting mends nothing.
  static PlatformAnswer not_run(const core::Error& error) {
    const bool lasting = error.code == core::Code::not_found ||
                         error.code == core::Code::permission_denied ||
                         error.code == core::Code::invalid_argument;
    return {lasting ? PlatformSeen::denied : PlatformSeen::unreachable, error.message};
  }

  // Slurm's own words decide: an exit code says only that something failed.
  static PlatformAnswer failed(const ProgramResult& result, const std::string& what) {
    const std::string said = printable(result.errors.empty() ? result.output : result.errors, 200);
    const bool denied = result.errors.find("denied") != std::string::npos ||
                        result.errors.find("Invalid") != std::string::npos ||
                        result.errors.find("unrecognized option") != std::string::npos;
    return {denied ? PlatformSeen::denied : PlatformSeen::unreachable,
            what + " failed with exit code " + std::to_string(result.code) + ": " + said};
  }

  Job read(std::int64_t id, const Value& fence, milliseconds budget) {
    Job out;
    const std::string name = slurm_job_name(id);
    const auto result =
        run({cfg_.squeue, "--noheader", "--states=all", "--jobs=" + std::to_string(id), kFields},
            budget);
    if (!result) {
      out.over = not_run(result.error());
      return out;
    }
    const bool purged = result->code != 0 && result->errors.find(kNoSuchJob) != std::string::npos;
    const auto job = result->code == 0 ? squeue_job(result->output, id) : std::nullopt;
    if (purged) {
      out.over = PlatformAnswer{PlatformSeen::ended, name + " is gone", true};
    } else if (result->code == 0 && !job) {
      // No proof of an end: with PrivateData=jobs a user sees nothing of other users' jobs.
      out.over = PlatformAnswer{PlatformSeen::denied, cfg_.squeue + " shows nothing of " + name +
                                                          ": may this user see jobs of others?"};
    } else if (!job) {
      out.over = failed(*result, cfg_.squeue + " for " + name);
    } else {
      judge(*job, fence, name, out);
    }
    return out;
  }

  static void judge(const Value& job, const Value& fence, const std::string& name, Job& out) {
    out.state = slurm_job_state(job);
    if (std::string other = slurm_difference(job, fence); !other.empty()) {
      out.over = PlatformAnswer{PlatformSeen::stale, name + " is another one now: " + other};
    } else if (out.state.over()) {
      out.over = PlatformAnswer{PlatformSeen::ended, name + " is " + out.state.text(), true};
    }
  }

  PlatformAnswer cancel(std::int64_t id, const std::string& signal, const Value& fence,
                        milliseconds budget) {
    const std::string name = slurm_job_name(id);
    std::vector<std::string> arguments{cfg_.scancel};
    if (!signal.empty()) {
      arguments.push_back("--signal=" + signal);
      arguments.emplace_back("--full");
    }
    arguments.push_back(std::to_string(id));
    const auto result = run(std::move(arguments), budget);
    if (!result) return not_run(result.error());
    // What Slurm says is judged by reading: it may have ended just before.
    const Job again = read(id, fence, budget);
    const std::string did = signal.empty() ? "cancelled " + name : "sent " + signal + " to " + name;
    if (result->code != 0) {
      const bool over = again.over && again.over->seen == PlatformSeen::ended;
      return over ? *again.over : failed(*result, cfg_.scancel + " for " + name);
    }
    if (again.over && again.over->seen == PlatformSeen::stale) {
      return {PlatformSeen::stale, did + ", and it was replaced meanwhile: " + again.over->detail,
              true};
    }
    if (again.over && again.over->seen == PlatformSeen::ended) return *again.over;
    return {PlatformSeen::running, did, true};
  }

  ScancelConfig cfg_;
  std::unique_ptr<FixedProgram> program_;
};

config::Check<std::string> absolute_path() {
  config::Check<std::string> out;
  out.ok = [](const std::string& path) {
    return path.size() > 1 && path.front() == '/' && path.back() != '/' &&
           path.find('\0') == std::string::npos && path.find("/../") == std::string::npos;
  };
  out.expected = "an absolute path";
  return out;
}

}  // namespace

void read(config::Reader& in, ScancelConfig& cfg) {
  in.optional("scancel", cfg.scancel, absolute_path(), "the program, on the machine of the leader");
  in.optional("squeue", cfg.squeue, absolute_path(),
              "the program that reads a job, on the same machine");
  in.optional("conf", cfg.conf, "SLURM_CONF for both; without it they find their own");
  in.optional("cluster", cfg.cluster, "jobs of other clusters are left alone");
  in.optional("signal", cfg.signal,
              "sent first, such as USR1 for a script that saves then; `allow_force` cancels");
  in.optional("timeout", cfg.timeout, config::positive(), "for one program; then it is killed");
  if (!cfg.signal.empty() && !is_plain_name(cfg.signal, 10, "")) {
    in.error("signal", "expected a name such as USR1");
  }
  if (!cfg.conf.empty() && cfg.conf.front() != '/') in.error("conf", "expected an absolute path");
}

std::unique_ptr<PlatformStop> make_scancel(const ScancelConfig& cfg, core::Clock& clock,
                                           std::unique_ptr<FixedProgram> program) {
  if (program == nullptr) program = local_program(clock);
  return std::make_unique<Scancel>(cfg, std::move(program));
}

}  // namespace tocsin::actions
