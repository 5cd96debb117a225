// Sends each notification as a text message to telephones, by Twilio or Amazon SNS.
//
// Sends       POST /2010-04-01/Accounts/<sid>/Messages.json, or Publish with a PhoneNumber, for each number:
//             headline, finding and the id of the issue, in at most two parts (message/sms_text.h).
// Retries     by the table in http_outcome.cc; Retry-After obeyed. A number that refuses for good is left
//             out, one that fails gets a delivery of its own (transport/mail_round.h).
// Idempotent  no: an answer that does not come may mean a message twice, so on_unknown is `drop`.
// Needs       an account of Twilio, and a number or a messaging service of it; or an access key of AWS that
//             may do sns:Publish.
// Source      twilio.com/docs: Messages resource, error dictionary; docs.aws.amazon.com: SNS API reference,
//             Publish; 3GPP TS 23.038 (alphabet, parts).

#include <algorithm>
#include <array>

#include "actions/contract/message_fault.h"
#include "actions/integration/aws_login.h"
#include "actions/integration/http_action.h"
#include "actions/integration/http_dialog.h"
#include "actions/integration/sns_publish.h"
#include "actions/message/sms_text.h"
#include "actions/transport/mail_round.h"
#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

using core::AttemptOutcome;
using core::OutcomeClass;

/// "+4915112345678": E.164.
bool is_number(const std::string& text) {
  constexpr std::size_t kLeast = 8;
  constexpr std::size_t kMost = 16;
  return text.size() >= kLeast && text.size() <= kMost && text.front() == '+' && text[1] != '0' &&
         text.find_first_not_of("0123456789", 1) == std::string::npos;
}

bool is_sid(const std::string& text, std::string_view kind) {
  constexpr std::size_t kSid = 34;
  return text.size() == kSid && text.starts_with(kind) &&
         text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string::npos;
}

/// What one number was answered.
struct NumberAnswer {
  AttemptOutcome outcome;
  bool dead = false;  // never to this number
};

NumberAnswer twilio_answer(const HttpResult& result, core::WallTime now) {
  static constexpr std::array<std::int64_t, 4> kDead{21211, 21610, 21614, 21612};
  static constexpr std::array<std::int64_t, 3> kThrottled{20429, 14107, 21611};
  // Sender, service, region or account, not the message.
  static constexpr std::array<std::int64_t, 9> kConfiguration{20003, 21212, 21408, 21603, 21606,
                                                              21659, 21660, 21703, 21705};
  NumberAnswer out;
  out.outcome = actions::classify(result, now);
  if (result.failure != HttpFailure::none) return out;
  const core::Value answer = json_answer(result.response);
  if (out.outcome.outcome == OutcomeClass::delivered) {
    if (core::text_at(answer, "sid").empty()) {
      out.outcome.outcome = OutcomeClass::configuration;  // somebody else answered
      out.outcome.code = "not_twilio";
      out.outcome.detail = "expected a message with a sid, found " + result.response.body;
    }
    return out;
  }
  const auto* code = core::as<std::int64_t>(core::find(answer, "code"));
  if (code == nullptr) return out;
  const auto among = [&](const auto& codes) {
    return std::find(codes.begin(), codes.end(), *code) != codes.end();
  };
  out.outcome.code = std::to_string(*code);
  out.outcome.detail = core::text_at(answer, "message");
  out.dead = among(kDead);
  if (among(kThrottled)) out.outcome.outcome = OutcomeClass::throttled;
  if (among(kConfiguration)) out.outcome.outcome = OutcomeClass::configuration;
  return out;
}

/// What became of the numbers of one attempt.
struct SmsRound {
  std::vector<std::string> reached;
  std::vector<std::string> refused;  // with their codes
  std::vector<std::string> put_off;
  std::vector<std::string> unanswered;
};

struct Sms final : HttpIntegration {
  std::string provider = "twilio";
  std::vector<std::string> to;
  AwsLogin aws;
  std::string account_sid;
  config::Secret auth_token;
  std::string from;
  std::string service;
  std::string min_severity = "error";

  Sms() {
    http_.url = config::Secret::from_value("https://api.twilio.com");
    url_means_ =
        "another address of the provider's API; default https://api.twilio.com or that of SNS";
  }

  void keys(config::Reader& in) override {
    in.required("to", to, "telephone numbers, each +<country><number>");
    in.optional("provider", provider, config::one_of({"twilio", "sns"}), "who sends the texts");
    in.optional("account_sid", account_sid, "twilio: the account, AC…");
    in.secret("auth_token", auth_token, "twilio: its token");
    in.optional("from", from, "number or name that sends; sns: may be left out");
    in.optional("messaging_service_sid", service,
                "twilio: in place of from, the service that chooses the sender, MG…");
    aws.declare(in);
    in.optional("min_severity", min_severity,
                config::one_of({"info", "warning", "error", "critical"}),
                "a message about nothing so severe is not sent");
    if (provider == "sns" && !in.has("url") && !in.has("url_file")) {
      http_.url = config::Secret::from_value(sns_endpoint(aws.region));
    }
  }

  void check(config::Reader& in) const override {
    if (in.describing()) return;
    if (in.has("to") && to.empty()) in.error("to", "expected at least one number");
    for (const std::string& one : to) {
      if (!is_number(one)) {
        in.error("to", "\"" + printable(one, 100) + "\" is no number: expected +<country><number>");
      }
    }
    if (provider == "sns") return check_sns(in);
    if (!is_sid(account_sid, "AC")) {
      in.error("account_sid", "expected AC and 32 hexadecimal digits");
    }
    if (!auth_token.set()) {
      in.error("auth_token", "missing key \"auth_token\" or \"auth_token_file\"");
    }
    if (in.has("aws")) in.error("aws", "belongs to provider: sns");
    if (from.empty() == service.empty()) {
      in.error("from", "expected either from or messaging_service_sid");
    }
    if (!service.empty() && !is_sid(service, "MG")) {
      in.error("messaging_service_sid", "expected MG and 32 hexadecimal digits");
    }
  }

  [[nodiscard]] Rendered render(const core::Notification& notification,
                                const Sender& /*sender*/) const override {
    if (provider == "sns") {
      SnsPublish publish;
      publish.add("Message", sms_text(notification));
      publish.attribute("AWS.SNS.SMS.SMSType", "Transactional");
      publish.attribute(
          from.starts_with('+') ? "AWS.MM.SMS.OriginationNumber" : "AWS.SNS.SMS.SenderID", from);
      return {SnsPublish::kContentType, publish.body(), {}};
    }
    const std::string sender = service.empty() ? "From=" + percent_encode(from)
                                               : "MessagingServiceSid=" + percent_encode(service);
    return {"application/x-www-form-urlencoded",
            sender + "&Body=" + percent_encode(sms_text(notification)),
            {}};
  }

  core::Status complete(HttpRequest& request, const HttpAttempt& attempt) const override {
    if (provider == "sns") {
      auto signing = aws.open(attempt.opened, "sns");
      if (!signing) return signing.error();
      request.aws = std::move(*signing);
      return core::ok();
    }
    const auto token = attempt.opened.reveal(auth_token, "auth_token");
    if (!token) return token.error();
    const std::string both = base64(account_sid + ":" + *token);
    attempt.opened.add(both);
    request.headers.emplace_back("authorization", "Basic " + both);
    return core::ok();
  }

  [[nodiscard]] AttemptOutcome carry_out(HttpDialog& dialog) const override {
    if (core::worst_of(dialog.notification()) < *core::severity_from(min_severity)) {
      AttemptOutcome out;
      out.declined = true;
      out.code = "below_min_severity";
      out.detail = "not sent: nothing in it is as severe as min_severity: " + min_severity;
      return out;
    }
    const Recipients recipients = recipients_of(to, dialog.notification().handles);
    SmsRound round;
    AttemptOutcome last;
    for (std::size_t i = 0; i < recipients.now.size(); ++i) {
      const std::string& number = recipients.now[i];
      const NumberAnswer answer = send_one(dialog, number);
      last = answer.outcome;
      if (answer.dead) {
        round.refused.push_back(number + " " + last.code);
      } else if (last.outcome == OutcomeClass::delivered) {
        round.reached.push_back(number);
      } else if (last.outcome == OutcomeClass::unknown && !dialog.common().retry_unknown) {
        round.unanswered.push_back(number);
      } else {
        // It concerns the next ones too: they are not asked now.
        round.put_off.assign(recipients.now.begin() + static_cast<std::ptrdiff_t>(i),
                             recipients.now.end());
        break;
      }
    }
    return outcome_of(round, recipients, std::move(last));
  }

 private:
  void check_sns(config::Reader& in) const {
    constexpr std::size_t kMostId = 11;
    if (!in.has("aws")) {
      in.error("aws", "missing key \"aws\": region, access_key_id and secret_access_key");
    }
    if (!account_sid.empty()) in.error("account_sid", "belongs to provider: twilio");
    if (auth_token.set()) in.error("auth_token", "belongs to provider: twilio");
    if (!service.empty()) in.error("messaging_service_sid", "belongs to provider: twilio");
    const bool word =
        from.size() <= kMostId && std::all_of(from.begin(), from.end(), [](char c) {
          return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        });
    if (!word && !is_number(from)) {
      in.error("from", "expected a number, or a name of at most 11 letters and digits");
    }
  }

  [[nodiscard]] NumberAnswer send_one(HttpDialog& dialog, const std::string& number) const {
    HttpAsk ask{.method = "POST", .content_type = dialog.rendered().content_type};
    if (provider == "sns") {
      ask.body = dialog.rendered().body + "&PhoneNumber=" + percent_encode(number);
      const HttpResult result = dialog.ask(ask);
      return {classify_sns(result, dialog.now()), sns_number_is_dead(result.response)};
    }
    ask.path = "/2010-04-01/Accounts/" + account_sid + "/Messages.json";
    ask.body = "To=" + percent_encode(number) + "&" + dialog.rendered().body;
    return twilio_answer(dialog.ask(ask), dialog.now());
  }

  static AttemptOutcome outcome_of(const SmsRound& round, const Recipients& recipients,
                                   AttemptOutcome last) {
    AttemptOutcome out;
    if (round.reached.empty() && round.unanswered.empty()) {
      out = std::move(last);
      // Nobody has it: all are tried again together, but for those that never will.
      for (const std::string& one : round.refused) add(out.handles, kept::kRefused, one);
      return out;
    }
    out.code = round.reached.empty() ? "no_answer" : "sent";
    out.confirmed = round.unanswered.empty();
    const auto tell = [&](const char* what, const std::vector<std::string>& numbers) {
      for (const std::string& one : numbers) {
        out.detail += (out.detail.empty() ? "" : "; ") + std::string(what) + one;
      }
    };
    tell("refused: ", round.refused);
    tell("put off: ", round.put_off);
    tell("no answer: ", round.unanswered);
    for (const std::string& one : round.refused) add(out.handles, kept::kRefused, one);
    for (const std::string& one : round.put_off) add(out.handles, kept::kPutOff, one);
    for (const std::string& one : recipients.otherwise) add(out.handles, kept::kPutOff, one);
    return out;
  }
};

}  // namespace

ActionDescriptor sms() {
  CommonConfig defaults;
  defaults.rate_limit = {20, std::chrono::hours(1), 5};
  defaults.retry_unknown = false;
  return {"sms",
          "Sends text messages to telephones by Twilio or Amazon SNS.",
          {.coalesce = false, .human = true, .stateful = false},
          read_http<Sms>,
          defaults};
}

}  // namespace tocsin::actions
