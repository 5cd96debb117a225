// Publishes each notification to a topic of Amazon SNS, which passes it on to queues, functions and people.
//
// Sends       POST Publish: the message as text or JSON, a subject, and attributes for filters; for a FIFO
//             topic the notification id as MessageDeduplicationId and the hash of the group as
//             MessageGroupId.
// Retries     by the table in http_outcome.cc and the code of the error.
// Idempotent  a FIFO topic drops a repeat within 5 minutes; another topic passes it on twice.
// Needs       an access key that may do sns:Publish on the topic.
// Source      docs.aws.amazon.com: SNS API reference, Publish; message attributes; FIFO topics.

#include "actions/integration/aws_login.h"
#include "actions/integration/http_action.h"
#include "actions/integration/incident_text.h"
#include "actions/integration/sns_publish.h"
#include "actions/message/headline.h"
#include "actions/message/sms_text.h"

namespace tocsin::actions {
namespace {

/// Printable ASCII, fewer than 100 characters.
std::string sns_subject(const std::string& text) {
  constexpr std::size_t kMost = 99;
  std::string out;
  for (const char c : sms_plain(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) == 0x80U) continue;  // of a character whose beginning is a '?'
    out += byte >= 0x20U && byte < 0x7FU ? c : '?';
  }
  return out.substr(0, kMost);
}

/// Part `index` of "arn:aws:sns:<region>:<account>:<name>".
std::string arn_part(const std::string& arn, std::size_t index) {
  std::size_t begin = 0;
  for (; index > 0 && begin != std::string::npos; --index) {
    begin = arn.find(':', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin == std::string::npos) return {};
  return arn.substr(begin, arn.find(':', begin) - begin);
}

struct Sns final : HttpIntegration {
  AwsLogin aws;
  std::string topic;
  std::string format = "text";

  Sns() {
    http_.url = config::Secret::from_value(sns_endpoint("us-east-1"));
    url_means_ = "another endpoint; default that of aws.region";
  }

  void keys(config::Reader& in) override {
    in.required("topic_arn", topic, "the topic, arn:aws:sns:<region>:<account>:<name>");
    in.optional("format", format, config::one_of({"text", "json"}),
                "text: for people; json: for programs, as webhook's format native");
    aws.declare(in);
    if (!in.has("url") && !in.has("url_file")) {
      http_.url = config::Secret::from_value(sns_endpoint(aws.region));
    }
  }

  void check(config::Reader& in) const override {
    if (in.describing()) return;
    if (!in.has("aws"))
      in.error("aws", "missing key \"aws\": region, access_key_id and secret_access_key");
    if (!topic.starts_with("arn:") || arn_part(topic, 2) != "sns" || arn_part(topic, 5).empty()) {
      in.error("topic_arn", "expected arn:aws:sns:<region>:<account>:<name>");
    } else if (in.has("aws") && arn_part(topic, 3) != aws.region) {
      in.error("topic_arn",
               "the topic is in " + arn_part(topic, 3) + ", and aws.region is " + aws.region);
    }
  }

  [[nodiscard]] Rendered render(const core::Notification& notification,
                                const Sender& sender) const override {
    constexpr std::size_t kText = 16'000;
    SnsPublish publish;
    publish.add("TopicArn", topic);
    publish.add("Subject", sns_subject(headline(notification)));
    publish.add("Message", format == "json"
                               ? native(notification, sender)
                               : incident_news(notification, sender, plain_text(), kText));
    const core::NotifiedIssue* lead = lead_of(notification);
    publish.attribute("status", notification.firing ? "firing" : "resolved");
    publish.attribute("severity", to_string(core::worst_of(notification)));
    publish.attribute("rule", lead == nullptr ? "" : lead->issue.rule);
    publish.attribute("job", job_or_cluster(notification, sender));
    publish.attribute("cluster", sender.cluster);
    publish.attribute("receiver", notification.receiver);
    if (topic.ends_with(".fifo")) {
      publish.add("MessageDeduplicationId", notification.notification_id);
      publish.add("MessageGroupId", notification.group_hash);
    }
    return {SnsPublish::kContentType, publish.body(), {}};
  }

  core::Status complete(HttpRequest& request, const HttpAttempt& attempt) const override {
    auto signing = aws.open(attempt.opened, "sns");
    if (!signing) return signing.error();
    request.aws = std::move(*signing);
    return core::ok();
  }

  [[nodiscard]] core::AttemptOutcome classify(const HttpResult& result,
                                              core::WallTime now) const override {
    return classify_sns(result, now);
  }
};

}  // namespace

ActionDescriptor sns() {
  return {"sns", "Publishes to a topic of Amazon SNS.", {.stateful = false}, read_http<Sns>, {}};
}

}  // namespace tocsin::actions
