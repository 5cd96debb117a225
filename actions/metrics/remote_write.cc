// publish_metric by Prometheus remote write.
//
// Sends       POST, protobuf in Snappy, 2.0 where the receiver speaks it, else 1.0.
// Retries     5xx and 429, with the state of that moment; never what was answered with another 4xx.
// Idempotent  a sample has the time of its push; the newest wins.
// Needs       a receiver of remote write.
// Source      Prometheus Remote-Write 1.0 and 2.0-rc.4.

#include <charconv>
#include <cstdlib>

#include "actions/metrics/metric_http.h"
#include "actions/metrics/metric_transport.h"
#include "actions/metrics/remote_write_body.h"

namespace tocsin::actions {
namespace {

using core::AttemptOutcome;
using core::OutcomeClass;

constexpr std::size_t kSamplesPerRequest = 2000;

enum class RemoteVersion { unknown, one, two };

std::string words_of_samples(std::span<const RemoteSample> samples) {
  std::string out;
  for (const RemoteSample& one : samples) {
    for (const auto& [name, value] : one.labels) {
      if (name == "__name__") out += value;
    }
    out += '{';
    for (const auto& [name, value] : one.labels) {
      if (name == "__name__") continue;
      out += (out.ends_with('{') ? "" : ",") + name + "=\"" + value + "\"";
    }
    const bool ended = one.value != one.value;
    out += "} " + (ended ? std::string("ended") : core::to_json(one.value)) + "\n";
  }
  return out;
}

class RemoteWriteSink final : public MetricSink {
 public:
  RemoteWriteSink(const std::string& version, const HttpSettings& http,
                  const Environment& environment, const CommonConfig& common)
      : settled_(version != "auto"),
        version_(version == "1" ? RemoteVersion::one
                 : settled_     ? RemoteVersion::two
                                : RemoteVersion::unknown),
        http_(http, environment, common) {}

  AttemptOutcome push(const MetricPush& push, std::chrono::milliseconds budget) override {
    std::vector<RemoteSample> samples;
    for (const IssueSeries& series : push.series) add_samples(series, false, samples);
    for (const IssueSeries& series : push.ended) add_samples(series, true, samples);
    const std::int64_t time = core::nanoseconds(push.now) / 1'000'000;
    const PushTime clock(http_, budget);
    std::span<const RemoteSample> left(samples);
    AttemptOutcome out;
    while (!left.empty()) {
      if (clock.left().count() <= 0) return out_of_push_time(left.size() / kSamplesPerRequest + 1);
      const auto some = left.first(std::min(left.size(), kSamplesPerRequest));
      left = left.subspan(some.size());
      AttemptOutcome one = write(some, time, clock);
      if (one.outcome != OutcomeClass::delivered) return one;
      one.detail = out.detail.empty() ? one.detail : out.detail;
      out = std::move(one);
    }
    return out;
  }

 private:
  AttemptOutcome write(std::span<const RemoteSample> samples, std::int64_t time,
                       const PushTime& clock) {
    if (version_ != RemoteVersion::one) {
      const MetricAnswer answer = http_.send(request_2(samples, time), clock.left());
      if (!speaks_only_1(answer)) return judged_2(answer, samples.size());
      if (settled_) return not_spoken(answer);
      if (clock.left().count() <= 0) return out_of_push_time(1);
    }
    const MetricAnswer answer = http_.send(request_1(samples, time), clock.left());
    if (answer.outcome.outcome == OutcomeClass::delivered) version_ = RemoteVersion::one;
    return judged(answer);
  }

  static MetricRequest request_1(std::span<const RemoteSample> samples, std::int64_t time) {
    MetricRequest out = request_of(samples);
    out.content_type = "application/x-protobuf";
    out.headers.emplace_back("x-prometheus-remote-write-version", "0.1.0");
    out.body = snappy_block(write_request_1(samples, time));
    return out;
  }
  static MetricRequest request_2(std::span<const RemoteSample> samples, std::int64_t time) {
    MetricRequest out = request_of(samples);
    out.content_type = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
    out.headers.emplace_back("x-prometheus-remote-write-version", "2.0.0");
    out.body = snappy_block(write_request_2(samples, time));
    return out;
  }
  static MetricRequest request_of(std::span<const RemoteSample> samples) {
    MetricRequest out;
    out.default_path = "/api/v1/write";
    out.headers.emplace_back("content-encoding", "snappy");
    out.body_in_words = words_of_samples(samples);
    return out;
  }

  /// A receiver of 1.0 answers 415; one that does not look at the type takes nothing and says nothing
  /// of what it has written, or cannot read what came.
  [[nodiscard]] bool speaks_only_1(const MetricAnswer& answer) const {
    if (answer.response.status == 415) return true;
    if (version_ == RemoteVersion::two && !settled_) return false;
    const bool says_nothing =
        answer.response.header("x-prometheus-remote-write-samples-written").empty();
    const bool taken = answer.outcome.outcome == OutcomeClass::delivered;
    return says_nothing && (taken || (answer.response.status == 400 && !settled_));
  }

  AttemptOutcome judged_2(const MetricAnswer& answer, std::size_t sent) {
    AttemptOutcome out = judged(answer);
    if (out.outcome != OutcomeClass::delivered) return out;
    version_ = RemoteVersion::two;
    const std::string text = answer.response.header("x-prometheus-remote-write-samples-written");
    std::size_t written = 0;
    std::from_chars(text.data(), text.data() + text.size(), written);
    if (written < sent) {
      out.detail = "the receiver wrote " + std::to_string(written) + " of " + std::to_string(sent) +
                   " samples";
    }
    return out;
  }

  static AttemptOutcome not_spoken(const MetricAnswer& answer) {
    AttemptOutcome out = answer.outcome;
    out.outcome = OutcomeClass::configuration;
    out.detail = "the receiver does not speak remote write 2.0; remove version: 2. " + out.detail;
    return out;
  }

  static AttemptOutcome judged(const MetricAnswer& answer) {
    AttemptOutcome out = answer.outcome;
    const int status = answer.response.status;
    if (status >= 500 && out.outcome == OutcomeClass::bad_payload) {
      out.outcome = OutcomeClass::transient;
    }
    // The specification: what was answered with 4xx is not sent again.
    if (status == 408 || status == 425) out.outcome = OutcomeClass::bad_payload;
    return out;
  }

  const bool settled_;
  RemoteVersion version_;
  const MetricHttp http_;
};

struct RemoteWriteTransport final : MetricTransport {
  std::string version = "auto";

  void declare(config::Reader& in) override {
    in.optional("version", version, config::one_of({"auto", "1", "2"}),
                "remote_write: auto tries 2.0 and then 1.0");
  }
  [[nodiscard]] std::unique_ptr<MetricSink> sink(const HttpSettings& http,
                                                 const Environment& environment,
                                                 const CommonConfig& common) const override {
    return std::make_unique<RemoteWriteSink>(version, http, environment, common);
  }
};

}  // namespace

MetricTransportDescriptor remote_write_transport() {
  return {"remote_write", "Prometheus remote write", true, true, {"version"}, [] {
            return std::unique_ptr<MetricTransport>(std::make_unique<RemoteWriteTransport>());
          }};
}

}  // namespace tocsin::actions
