// Reads       DescribeTrainingJob: TrainingJobArn, CreationTime, TrainingJobStatus.
// Stops       StopTrainingJob: SIGTERM to the container, 120 s, then SIGKILL.
// Fenced      by the whole name and ARN, never by a prefix, and by CreationTime.
// Proof       status Stopped, Completed or Failed. "Not found" proves nothing: a training job that ran is
//             still described, so it is another account's.
// Signed      SigV4, service `sagemaker`.
// Source      Amazon SageMaker API reference: StopTrainingJob, DescribeTrainingJob.
#include "actions/platform/sagemaker.h"

#include <cmath>
#include <optional>

#include "actions/platform/platform_fence.h"
#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

using core::Value;
using std::chrono::milliseconds;

std::optional<std::int64_t> created_at(const Value& job) {
  const Value* time = core::find(job, "CreationTime");
  if (const auto* seconds = core::as<std::int64_t>(time)) return *seconds;
  const auto* seconds = core::as<double>(time);
  if (seconds == nullptr || !(*seconds > 0 && *seconds < 1e11)) return std::nullopt;
  return static_cast<std::int64_t>(std::floor(*seconds));
}

/// "arn:aws:sagemaker:eu-central-1:123456789012:training-job/a" → the region, and "a".
struct Arn {
  std::string region;
  std::string name;
};
std::optional<Arn> read_arn(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size() && parts.size() < 6;) {
    const std::size_t end =
        parts.size() == 5 ? text.size() : std::min(text.find(':', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  constexpr std::string_view kResource = "training-job/";
  if (parts.size() != 6 || parts[0] != "arn" || parts[2] != "sagemaker") return std::nullopt;
  if (!parts[5].starts_with(kResource)) return std::nullopt;
  return Arn{parts[3], parts[5].substr(kResource.size())};
}

class SageMaker final : public PlatformStop {
 public:
  SageMaker(const SageMakerConfig& cfg, HttpClient* http) : cfg_(cfg), http_(cfg.place, http) {}

  [[nodiscard]] std::string_view name() const override { return "sagemaker"; }

  [[nodiscard]] bool reaches(const Value& fence) const override {
    if (core::text_at(fence, "platform") != "sagemaker") return false;
    const std::string job = core::text_at(fence, "name");
    const auto arn = read_arn(core::text_at(fence, "arn"));
    // Names in ARNs are in lower case.
    return is_plain_name(job, 63, "-") && arn && arn->region == cfg_.aws.region &&
           lower(job) == lower(arn->name) && whole_at(fence, "opened").value_or(0) > 0;
  }

  PlatformAnswer carry_out(const PlatformTarget& target, PlatformRung rung,
                           milliseconds budget) override {
    const std::string job = core::text_at(target.fence, "name");
    const PlatformReply seen = call("DescribeTrainingJob", job, budget);
    if (const auto over = compared(seen, job, target.fence)) return *over;
    const std::string status = core::text_at(seen.json, "TrainingJobStatus");
    const bool stopping = status == "Stopping";
    // There is no harder way: SageMaker itself sends SIGKILL.
    if (rung != PlatformRung::graceful || stopping) {
      return {PlatformSeen::running, text_of(job) + " is " + printable(status, 40), stopping};
    }
    const PlatformReply reply = call("StopTrainingJob", job, budget);
    if (reply.status == 200) {
      return {PlatformSeen::running, "SageMaker was asked to stop " + text_of(job), true};
    }
    if (reply.status == 400) {  // it may have ended meanwhile
      const PlatformReply again = call("DescribeTrainingJob", job, budget);
      if (const auto over = compared(again, job, target.fence)) return *over;
    }
    return refused(reply, "the request to stop " + text_of(job));
  }

 private:
  static std::string text_of(const std::string& job) { return "training job " + job; }
  static std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return text;
  }

  PlatformReply call(const std::string& operation, const std::string& job, milliseconds budget) {
    PlatformRequest request{"POST",
                            "/",
                            {{"content-type", "application/x-amz-json-1.1"},
                             {"x-amz-target", "SageMaker." + operation}},
                            core::to_json(core::ValueMap{{"TrainingJobName", job}})};
    request.aws = &cfg_.aws;
    request.service = "sagemaker";
    return http_.send(request, budget);
  }

  static PlatformAnswer refused(const PlatformReply& reply, const std::string& what) {
    PlatformAnswer out = not_answered(reply, "SageMaker", what);
    const std::string type = core::text_at(reply.json, "__type");
    // 400 is its status for who may not, and for too many requests too.
    const bool later = type.find("Throttling") != std::string::npos;
    if (reply.status == 400 && !later) out.seen = PlatformSeen::denied;
    return out;
  }

  static std::optional<PlatformAnswer> compared(const PlatformReply& seen, const std::string& job,
                                                const Value& fence) {
    const std::string status = core::text_at(seen.json, "TrainingJobStatus");
    if (seen.status != 200 || status.empty()) {
      return refused(seen, "the question for " + text_of(job));
    }
    const std::string arn = core::text_at(seen.json, "TrainingJobArn");
    const auto created = created_at(seen.json);
    if (lower(arn) != lower(core::text_at(fence, "arn"))) {
      return PlatformAnswer{PlatformSeen::stale,
                            text_of(job) + " is another one: " + printable(arn, 200), false};
    }
    if (!created || !made_before_opening(*created, fence, false)) {
      return PlatformAnswer{
          PlatformSeen::stale,
          text_of(job) + " is another one now: it was created " +
              (created ? "at " + time_text(*created) : std::string("at no time")) +
              ", after the run had begun",
          false};
    }
    if (status == "Stopped" || status == "Completed" || status == "Failed") {
      return PlatformAnswer{PlatformSeen::ended, text_of(job) + " is " + status, true};
    }
    return std::nullopt;
  }

  SageMakerConfig cfg_;
  PlatformHttp http_;
};

}  // namespace

void read(config::Reader& in, SageMakerConfig& cfg) {
  cfg.aws.declare(in);
  read_place(in, cfg.place, PlaceKey::optional, PlaceKey::none);
  if (in.describing() || !cfg.place.url.empty() || cfg.aws.region.empty()) return;
  const bool china = cfg.aws.region.starts_with("cn-");
  cfg.place.url =
      "https://api.sagemaker." + cfg.aws.region + ".amazonaws.com" + (china ? ".cn" : "");
}

std::unique_ptr<PlatformStop> make_sagemaker(const SageMakerConfig& cfg, HttpClient* http) {
  return std::make_unique<SageMaker>(cfg, http);
}

}  // namespace tocsin::actions
