// publish_metric by Amazon CloudWatch.
//
// Sends       POST, action PutMetricData of the query API, gzip, Signature Version 4.
// Retries     5xx and throttling, with the state of that moment.
// Idempotent  a datum has the time of its push; the newest wins.
// Needs       an access key that may do cloudwatch:PutMetricData.
// Source      Amazon CloudWatch API Reference 2010-08-01: PutMetricData, MetricDatum, Dimension.

#include <algorithm>
#include <array>
#include <cstdio>

#include "actions/integration/aws_login.h"
#include "actions/metrics/gzip.h"
#include "actions/metrics/metric_http.h"
#include "actions/metrics/metric_transport.h"
#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

using core::AttemptOutcome;
using core::OutcomeClass;

constexpr std::size_t kDataPerRequest = 1000;
constexpr std::size_t kBytesPerRequest = 1'000'000;  // 1 MB, counted before compression
constexpr std::size_t kMaxDimensions = 30;
constexpr std::size_t kMaxDimensionName = 255;
constexpr std::size_t kMaxDimensionValue = 1024;

/// Dimensions are ASCII without control characters, and not blank.
std::string dimension_text(const std::string& text, std::size_t limit) {
  std::string out = text.substr(0, limit);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '_');
  return out.find_first_not_of(' ') == std::string::npos ? "_" : out;
}

/// Fields of one datum, to be put behind "MetricData.member.<n>.".
using DatumFields = std::vector<std::pair<std::string, std::string>>;

DatumFields datum_of(const IssueSeries& series, const IssueFamily& family,
                     const std::string& timestamp) {
  std::array<char, 48> value{};
  std::snprintf(value.data(), value.size(), "%.15g", family.value(series));
  const bool time = std::string_view(family.name).ends_with("_seconds");
  DatumFields out{{"MetricName", family.name},
                  {"Timestamp", timestamp},
                  {"Unit", time ? "Seconds" : "None"},
                  {"Value", value.data()}};
  std::size_t count = 0;
  for (const auto& [name, text] : series.labels) {
    if (text.empty() || count == kMaxDimensions) continue;
    const std::string member = "Dimensions.member." + std::to_string(++count) + ".";
    out.emplace_back(member + "Name", dimension_text(name, kMaxDimensionName));
    out.emplace_back(member + "Value", dimension_text(text, kMaxDimensionValue));
  }
  return out;
}

/// A form of the query API that takes data as long as it stays within the limits.
class CloudWatchForm {
 public:
  explicit CloudWatchForm(const std::string& name_space)
      : text_("Action=PutMetricData&Version=2010-08-01&Namespace=" + percent_encode(name_space)) {}

  /// False: full.
  bool add(const DatumFields& datum) {
    if (count_ == kDataPerRequest) return false;
    const std::string member = "&MetricData.member." + std::to_string(count_ + 1) + ".";
    std::string more;
    for (const auto& [name, value] : datum) more += member + name + "=" + percent_encode(value);
    if (count_ > 0 && text_.size() + more.size() > kBytesPerRequest) return false;
    text_ += more;
    ++count_;
    return true;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::size_t count_ = 0;
};

std::string words_of_form(const std::string& form) {
  std::string out = form;
  std::replace(out.begin(), out.end(), '&', '\n');
  return out;
}

/// <Error><Type>…</Type><Code>Throttling</Code>…: what stands in Code.
std::string aws_error_code(const std::string& body) {
  const std::size_t begin = body.find("<Code>");
  if (begin == std::string::npos) return {};
  const std::size_t end = body.find("</Code>", begin);
  return end == std::string::npos ? "" : body.substr(begin + 6, end - begin - 6);
}

bool is_one_of(const std::string& code, std::initializer_list<std::string_view> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

AttemptOutcome judged_by_cloudwatch(const MetricAnswer& answer) {
  AttemptOutcome out = answer.outcome;
  const int status = answer.response.status;
  if (status < 300) return out;
  const std::string code = aws_error_code(answer.response.body);
  if (!code.empty()) out.code += " " + printable(code, 100);
  if (is_one_of(code, {"Throttling", "ThrottlingException", "RequestLimitExceeded",
                       "RequestThrottled", "TooManyRequestsException"})) {
    out.outcome = OutcomeClass::throttled;
  } else if (status >= 500) {
    if (out.outcome != OutcomeClass::throttled) out.outcome = OutcomeClass::transient;
  } else if (is_one_of(code, {"AccessDenied", "AccessDeniedException", "IncompleteSignature",
                              "InvalidClientTokenId", "MissingAuthenticationToken", "OptInRequired",
                              "SignatureDoesNotMatch", "ExpiredToken", "ExpiredTokenException",
                              "UnrecognizedClientException", "NotAuthorized"})) {
    out.outcome = OutcomeClass::configuration;
  } else if (code.starts_with("InvalidParameter") || code == "MissingParameter") {
    out.outcome = OutcomeClass::bad_payload;
  }
  return out;
}

class CloudWatchSink final : public MetricSink {
 public:
  CloudWatchSink(const AwsLogin& login, std::string name_space, const HttpSettings& http,
                 const Environment& environment, const CommonConfig& common)
      : login_(login), name_space_(std::move(name_space)), http_(http, environment, common) {}

  // A series that ends is not said: it gets no more data, and CloudWatch calls that missing.
  AttemptOutcome push(const MetricPush& push, std::chrono::milliseconds budget) override {
    const std::string timestamp = core::to_rfc3339(push.now);
    const PushTime time(http_, budget);
    CloudWatchForm form(name_space_);
    AttemptOutcome out;
    for (const IssueSeries& series : push.series) {
      for (const IssueFamily& family : families_of(series)) {
        const DatumFields datum = datum_of(series, family, timestamp);
        if (form.add(datum)) continue;
        out = send(form, time);
        if (out.outcome != OutcomeClass::delivered) return out;
        form = CloudWatchForm(name_space_);
        form.add(datum);
      }
    }
    return form.count() == 0 ? out : send(form, time);
  }

 private:
  AttemptOutcome send(const CloudWatchForm& form, const PushTime& time) const {
    if (time.left().count() <= 0) return out_of_push_time(1);
    auto compressed = gzip(form.text());
    MetricRequest request;
    request.content_type = "application/x-www-form-urlencoded; charset=utf-8";
    if (compressed) {
      request.headers = {{"content-encoding", "gzip"}};
      request.body = std::move(*compressed);
      request.body_in_words = words_of_form(form.text());
    } else {
      request.body = form.text();
    }
    request.complete = [this](HttpRequest& made, Opened& opened) -> core::Status {
      auto signing = login_.open(opened, "monitoring");
      if (!signing) return signing.error();
      made.aws = std::move(*signing);
      return core::ok();
    };
    return judged_by_cloudwatch(http_.send(std::move(request), time.left()));
  }

  const AwsLogin& login_;
  const std::string name_space_;
  const MetricHttp http_;
};

struct CloudWatchTransport final : MetricTransport {
  AwsLogin login;
  std::string name_space = "Tocsin";

  void declare(config::Reader& in) override {
    login.declare(in);
    in.optional("namespace", name_space, config::not_empty(),
                "cloudwatch: where the metrics stand");
    if (name_space.starts_with("AWS/")) {
      in.error("namespace", "AWS/ is kept for AWS's own");
    } else if (name_space.size() > 255 || name_space.starts_with(':') ||
               name_space.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789.-_/#: ") != std::string::npos) {
      in.error("namespace", "expected letters, digits and . - _ / # : (no colon first)");
    }
  }
  void check(config::Reader& in, const HttpSettings& http) const override {
    if (login.region.empty()) in.error("aws", "transport: cloudwatch needs region and keys");
    if (http.bearer_token.set() || http.basic_auth.set() || http.oauth2.set()) {
      in.error("transport", "cloudwatch signs its requests; take the other credentials out");
    }
  }
  [[nodiscard]] std::string default_url() const override {
    const std::string domain =
        login.region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
    return "https://monitoring." + login.region + domain + "/";
  }
  [[nodiscard]] std::unique_ptr<MetricSink> sink(const HttpSettings& http,
                                                 const Environment& environment,
                                                 const CommonConfig& common) const override {
    return std::make_unique<CloudWatchSink>(login, name_space, http, environment, common);
  }
};

}  // namespace

MetricTransportDescriptor cloudwatch_transport() {
  return {"cloudwatch", "Amazon CloudWatch", true, false, {"aws", "namespace"}, [] {
            return std::unique_ptr<MetricTransport>(std::make_unique<CloudWatchTransport>());
          }};
}

}  // namespace tocsin::actions
