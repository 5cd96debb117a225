// Reads       GET /api/jobs/<submission id>: status, start_time (ms).
// Stops       POST /api/jobs/<submission id>/stop: SIGTERM to the driver and what it started, SIGKILL
//             after RAY_JOB_STOP_WAIT_TIME_S of the job's runtime_env (3 s unless it says otherwise).
// Fenced      by the submission id and start_time: ids may be given again once a job was deleted.
// Proof       status STOPPED, SUCCEEDED or FAILED, or a 404 that names the job.
// Source      Ray Jobs REST API; ray.job_submission.JobStatus.
#include "actions/platform/ray.h"

#include <optional>

#include "actions/platform/platform_fence.h"
#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

using core::Value;
using std::chrono::milliseconds;

class Ray final : public PlatformStop {
 public:
  Ray(const RayConfig& cfg, HttpClient* http) : http_(cfg.place, http) {}

  [[nodiscard]] std::string_view name() const override { return "ray"; }

  [[nodiscard]] bool reaches(const Value& fence) const override {
    return core::text_at(fence, "platform") == "ray" && !id_of(fence).empty() &&
           whole_at(fence, "opened").value_or(0) > 0;
  }

  PlatformAnswer carry_out(const PlatformTarget& target, PlatformRung rung,
                           milliseconds budget) override {
    const std::string id = id_of(target.fence);
    const std::string path = "/api/jobs/" + percent_encode(id);
    const PlatformReply job =
        http_.send({"GET", path, {{"accept", "application/json"}}, "", {}}, budget);
    if (const auto over = compared(job, id, target.fence)) return *over;
    // There is no harder way: Ray itself sends SIGKILL.
    if (rung != PlatformRung::graceful) {
      return {PlatformSeen::running, text_of(id) + " is " + status_of(job), false};
    }
    const PlatformReply reply =
        http_.send({"POST", path + "/stop", {{"accept", "application/json"}}, "", {}}, budget);
    const auto* stopped = core::as<bool>(core::find(reply.json, "stopped"));
    if (reply.status != 200 || stopped == nullptr) {
      return not_answered(reply, "Ray", "the request to stop " + text_of(id));
    }
    std::string did =
        *stopped ? "Ray was asked to stop " + text_of(id) : text_of(id) + " did not run";
    if (wait_of(job.json).empty()) {
      did += "; it gets 3 s to save (RAY_JOB_STOP_WAIT_TIME_S is not set in its runtime_env)";
    }
    return {PlatformSeen::running, did, true};
  }

 private:
  static std::string id_of(const Value& fence) {
    std::string id = core::text_at(fence, "submission_id");
    return is_plain_name(id, 128, "-_.") ? id : std::string();
  }
  static std::string text_of(const std::string& id) { return "Ray job " + id; }
  static std::string status_of(const PlatformReply& job) {
    return printable(core::text_at(job.json, "status"), 40);
  }
  static std::string wait_of(const Value& job) {
    return json_text(job, "runtime_env.env_vars.RAY_JOB_STOP_WAIT_TIME_S");
  }

  static std::optional<PlatformAnswer> compared(const PlatformReply& job, const std::string& id,
                                                const Value& fence) {
    if (job.status == 404) {
      // Ray's own answer names the job; that of something else at this address does not.
      if (job.body.find(id) == std::string::npos) {
        PlatformAnswer out = not_answered(job, "Ray", "the question for " + text_of(id));
        out.seen = PlatformSeen::denied;
        return out;
      }
      return PlatformAnswer{PlatformSeen::ended, text_of(id) + " is gone", true};
    }
    const std::string status = core::text_at(job.json, "status");
    if (job.status != 200 || status.empty()) {
      return not_answered(job, "Ray", "the question for " + text_of(id));
    }
    const std::string named = core::text_at(job.json, "submission_id");
    const auto start = whole_at(job.json, "start_time");
    if ((!named.empty() && named != id) || !start ||
        !made_before_opening(*start / 1000, fence, false)) {
      return PlatformAnswer{PlatformSeen::stale, text_of(id) + " is another one now: it started " +
                                                     (start ? "at " + time_text(*start / 1000)
                                                            : std::string("at an unknown time")) +
                                                     ", after the run had begun"};
    }
    if (status == "STOPPED" || status == "SUCCEEDED" || status == "FAILED") {
      return PlatformAnswer{PlatformSeen::ended, text_of(id) + " is " + status, true};
    }
    return std::nullopt;
  }

  PlatformHttp http_;
};

}  // namespace

void read(config::Reader& in, RayConfig& cfg) {
  read_place(in, cfg.place, PlaceKey::required, PlaceKey::optional);
}

std::unique_ptr<PlatformStop> make_ray(const RayConfig& cfg, HttpClient* http) {
  return std::make_unique<Ray>(cfg, http);
}

}  // namespace tocsin::actions
