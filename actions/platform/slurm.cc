// Reads       GET /slurm/<version>/job/<id>: state, restart_cnt, start_time, cluster.
// Cancels     DELETE of the same: SIGCONT and SIGTERM, SIGKILL after the cluster's KillWait. With
//             `signal` that signal goes to all steps first, and the cancel is the harder rung.
// Fenced      by reading before and after: Slurm has no precondition, so what happens in between is said.
// Proof       a terminal state without COMPLETING, or "invalid job id" (purged).
// Answers     an HTTP 200 may carry errors[]; these count, not the status.
// Source      Slurm REST API reference v0.0.40 … v0.0.42; the error numbers of Slurm; scancel(1).
#include "actions/platform/slurm.h"

#include "actions/platform/platform_fence.h"
#include "actions/platform/slurm_job.h"
#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

using core::Value;
using core::ValueList;
using std::chrono::milliseconds;

constexpr std::int64_t kInvalidJobId = 2017;  // ESLURM_INVALID_JOB_ID
constexpr std::int64_t kAlreadyDone = 2021;   // ESLURM_ALREADY_DONE

/// The first error of an answer; 0: none.
std::int64_t error_of(const PlatformReply& reply) {
  const auto* errors = core::as<ValueList>(core::find(reply.json, "errors"));
  if (errors == nullptr || errors->empty()) return 0;
  return whole_at(errors->front(), "error_number").value_or(-1);
}

std::string error_text(const PlatformReply& reply) {
  std::string out = json_text(reply.json, "errors.0.description");
  if (out.empty()) out = json_text(reply.json, "errors.0.error");
  return printable(out.empty() ? reply.body : out, 200);
}

class Slurm final : public PlatformStop {
 public:
  Slurm(const SlurmConfig& cfg, HttpClient* http) : cfg_(cfg), http_(cfg.place, http) {}

  [[nodiscard]] std::string_view name() const override { return "slurm"; }

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
    std::string signal;
    if (!cfg_.signal.empty() && rung == PlatformRung::graceful) signal = cfg_.signal;
    if (cfg_.signal.empty() && rung == PlatformRung::force) signal = "KILL";
    const std::string query = signal.empty() ? "" : "?signal=" + signal + "&flags=FULL_JOB";
    const PlatformReply reply = http_.send(request("DELETE", id, query), budget, kTokenHeader);
    const std::int64_t error = error_of(reply);
    if (reply.status == 200 && error == 0) return after(id, signal, target.fence, budget);
    if (error == kAlreadyDone || error == kInvalidJobId) {
      const Job again = read(id, target.fence, budget);
      if (again.over) return *again.over;
    }
    return refused(reply, "the request to cancel " + slurm_job_name(id));
  }

 private:
  static constexpr const char* kTokenHeader = "x-slurm-user-token";
  struct Job {
    SlurmJobState state;
    std::optional<PlatformAnswer> over;
  };

  [[nodiscard]] PlatformRequest request(const char* method, std::int64_t id,
                                        const std::string& query) const {
    PlatformRequest out{method,
                        "/slurm/" + cfg_.version + "/job/" + std::to_string(id) + query,
                        {{"accept", "application/json"}},
                        "",
                        {}};
    if (!cfg_.user.empty()) out.headers.emplace_back("x-slurm-user-name", cfg_.user);
    return out;
  }

  static PlatformAnswer refused(const PlatformReply& reply, const std::string& what) {
    PlatformAnswer out = not_answered(reply, "Slurm", what);
    if (error_of(reply) != 0) {
      // Whatever it is (access denied, an invalid signal): asked again it is the same.
      out.seen = PlatformSeen::denied;
      out.detail = "Slurm refused " + what + ": " + error_text(reply);
    }
    return out;
  }

  Job read(std::int64_t id, const Value& fence, milliseconds budget) {
    Job out;
    const PlatformReply reply = http_.send(request("GET", id, ""), budget, kTokenHeader);
    if (error_of(reply) == kInvalidJobId) {
      out.over = PlatformAnswer{PlatformSeen::ended, slurm_job_name(id) + " is gone", true};
      return out;
    }
    const auto* jobs = core::as<ValueList>(core::find(reply.json, "jobs"));
    const Value* job = nullptr;
    if (jobs != nullptr) {
      for (const Value& one : *jobs) {
        if (whole_at(one, "job_id") == id) job = &one;
      }
    }
    if (reply.status != 200 || error_of(reply) != 0 || job == nullptr) {
      out.over = refused(reply, "the question for " + slurm_job_name(id));
      return out;
    }
    out.state = slurm_job_state(*job);
    if (std::string other = slurm_difference(*job, fence); !other.empty()) {
      out.over =
          PlatformAnswer{PlatformSeen::stale, slurm_job_name(id) + " is another one now: " + other};
    } else if (out.state.over()) {
      out.over =
          PlatformAnswer{PlatformSeen::ended, slurm_job_name(id) + " is " + out.state.text(), true};
    }
    return out;
  }

  // It is not atomic with the reading: whether it was the job we meant is said by a second one.
  PlatformAnswer after(std::int64_t id, const std::string& signal, const Value& fence,
                       milliseconds budget) {
    const std::string did = signal.empty() ? "cancelled " + slurm_job_name(id)
                                           : "sent " + signal + " to " + slurm_job_name(id);
    const Job again = read(id, fence, budget);
    if (again.over && again.over->seen == PlatformSeen::stale) {
      return {PlatformSeen::stale, did + ", and it was replaced meanwhile: " + again.over->detail,
              true};
    }
    if (again.over && again.over->seen == PlatformSeen::ended) return *again.over;
    return {PlatformSeen::running, did, true};
  }

  SlurmConfig cfg_;
  PlatformHttp http_;
};

}  // namespace

void read(config::Reader& in, SlurmConfig& cfg) {
  read_place(in, cfg.place, PlaceKey::required, PlaceKey::required);
  in.optional("version", cfg.version, config::not_empty(), "of the API: GET /openapi lists them");
  in.optional("user", cfg.user, "whose token it is, where slurmrestd wants the name too");
  in.optional("cluster", cfg.cluster, "jobs of other clusters are left alone");
  in.optional("signal", cfg.signal,
              "sent first, such as USR1 for a script that saves then; `allow_force` cancels");
  if (!is_plain_name(cfg.version, 20, ".")) in.error("version", "expected a text such as v0.0.41");
  if (!cfg.signal.empty() && !is_plain_name(cfg.signal, 10, "")) {
    in.error("signal", "expected a name such as USR1");
  }
}

std::unique_ptr<PlatformStop> make_slurm(const SlurmConfig& cfg, HttpClient* http) {
  return std::make_unique<Slurm>(cfg, http);
}

}  // namespace tocsin::actions
