#include "actions/integration/oauth2_token.h"

#include <algorithm>
#include <span>
#include <utility>

#include "actions/transport/redact.h"
#include "core/json.h"
#include "core/value.h"

namespace tocsin::actions {
namespace {

using core::Duration;
using core::OutcomeClass;

// A token is not used in its last minute, or the last fifth of a short life: the request takes time.
constexpr Duration kSpare = std::chrono::seconds(60);
// Of a token whose end nobody states. If it ends earlier, a 401 says so.
constexpr Duration kUnstated = std::chrono::minutes(5);
constexpr Duration kLongestKept = std::chrono::hours(24);
constexpr std::size_t kMaxTokenText = 16 * 1024;
constexpr std::size_t kMaxTokenAnswer = 64 * 1024;
constexpr std::size_t kMaxWords = 500;

GivenToken no_token(OutcomeClass outcome, std::string detail) {
  GivenToken out;
  out.failure.emplace();
  out.failure->outcome = outcome;
  out.failure->code = "oauth2";
  out.failure->detail = "no access token: " + std::move(detail);
  return out;
}

/// RFC 6749 §5.2: {"error": "invalid_client", "error_description": "…"}; else the answer as it is.
std::string refusal_words(const HttpResponse& response) {
  std::string out = std::to_string(response.status);
  const auto parsed = core::parse_json(response.body, kMaxTokenAnswer);
  const core::Value* error = parsed ? core::find(*parsed, "error") : nullptr;
  const auto* name = core::as<std::string>(error);
  if (name == nullptr) return out + " " + response.body;
  out += " " + *name;
  const auto* words = core::as<std::string>(core::find(*parsed, "error_description"));
  return words == nullptr ? out : out + ": " + *words;
}

OutcomeClass class_of_refusal(const core::AttemptOutcome& outcome) {
  switch (outcome.outcome) {
    case OutcomeClass::transient:
    case OutcomeClass::throttled:
    case OutcomeClass::unknown:  // asking for a token twice does no harm
      return OutcomeClass::transient;
    default:
      return OutcomeClass::configuration;
  }
}

/// Seconds, which some servers write as a text.
std::optional<Duration> life_of(const core::Value& answer) {
  const core::Value* given = core::find(answer, "expires_in");
  double seconds = -1;
  if (const auto* whole = core::as<std::int64_t>(given)) seconds = static_cast<double>(*whole);
  if (const auto* number = core::as<double>(given)) seconds = *number;
  if (const auto* text = core::as<std::string>(given);
      text != nullptr && !text->empty() && text->size() < 10 &&
      text->find_first_not_of("0123456789") == std::string::npos) {
    seconds = std::stod(*text);
  }
  if (!(seconds >= 0)) return std::nullopt;
  const double most = std::chrono::duration<double>(kLongestKept).count();
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, most)));
}

/// A token becomes a part of a header line.
bool fit_for_header(const std::string& token) {
  return !token.empty() && token.size() <= kMaxTokenText &&
         std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7F'; });
}

bool is_bearer(const std::string& type) {
  static constexpr std::string_view kBearer = "bearer";
  return std::equal(type.begin(), type.end(), kBearer.begin(), kBearer.end(),
                    [](char a, char b) { return (a | 0x20) == b; });
}

void add_parameter(std::string& form, std::string_view name, std::string_view value) {
  form += form.empty() ? "" : "&";
  form += percent_encode(name) + "=" + percent_encode(value);
}

}  // namespace

GivenToken OAuth2Token::get(const HttpRequest& like, Opened& opened,
                            std::chrono::milliseconds budget, const std::string& refused) {
  const auto secret = opened.reveal(settings_.client_secret, "oauth2.client_secret");
  if (!secret) return no_token(OutcomeClass::configuration, secret.error().message);
  const Duration end = clock_.monotonic() + budget;
  const core::MutexLock lock(mutex_);
  const bool good =
      !token_.empty() && token_ != refused && secret_ == *secret && clock_.monotonic() < until_;
  if (good) {
    opened.add(token_);
    return {token_, true, {}};
  }
  token_.clear();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock_.monotonic());
  if (left.count() <= 0) {
    return no_token(OutcomeClass::transient, "the server took the whole time of an attempt");
  }
  GivenToken out = fetch(like, *secret, opened, left);
  if (out.failure) out.failure->detail = printable(opened.masked(out.failure->detail), kMaxWords);
  return out;
}

GivenToken OAuth2Token::fetch(const HttpRequest& like, const std::string& secret, Opened& opened,
                              std::chrono::milliseconds budget) {
  if (const std::string problem = url_problem(settings_.token_url, like.guard); !problem.empty()) {
    return no_token(OutcomeClass::configuration, "token_url: " + problem);
  }
  HttpRequest request;
  request.url = settings_.token_url;
  request.guard = like.guard;
  request.proxy = like.proxy;
  request.tls = like.tls;
  request.tls.server_name.clear();  // of another host
  request.http2 = like.http2;
  request.connect_timeout = like.connect_timeout;
  request.timeout = budget;
  request.answers_credential = true;
  request.headers = {{"content-type", "application/x-www-form-urlencoded"},
                     {"accept", "application/json"},
                     {"user-agent", "tocsin"}};
  add_parameter(request.body, "grant_type", "client_credentials");
  std::string scope;
  for (const std::string& one : settings_.scopes) scope += (scope.empty() ? "" : " ") + one;
  if (!scope.empty()) add_parameter(request.body, "scope", scope);
  for (const auto& [name, value] : settings_.parameters) {
    add_parameter(request.body, name, value);
  }
  if (settings_.credentials_in == "body") {
    add_parameter(request.body, "client_id", settings_.client_id);
    add_parameter(request.body, "client_secret", secret);
  } else {
    // RFC 6749 §2.3.1: both are encoded before they are joined.
    const std::string pair =
        base64(percent_encode(settings_.client_id) + ":" + percent_encode(secret));
    opened.add(pair);
    request.headers.emplace_back("authorization", "Basic " + pair);
  }
  request.credentials = opened.all();
  const HttpResult result = http_.send(request);
  const core::AttemptOutcome outcome = classify(result, clock_.now());
  if (result.failure != HttpFailure::none) {
    return no_token(class_of_refusal(outcome), outcome.code + " " + outcome.detail);
  }
  if (outcome.outcome != OutcomeClass::delivered) {
    GivenToken out = no_token(class_of_refusal(outcome), refusal_words(result.response));
    out.failure->retry_after = outcome.retry_after;
    return out;
  }
  GivenToken out = keep(result.response, opened);
  if (!out.failure) secret_ = secret;
  return out;
}

GivenToken OAuth2Token::keep(const HttpResponse& response, Opened& opened) {
  // Never the answer's own words: it is the credential.
  const auto parsed = core::parse_json(response.body, kMaxTokenAnswer);
  if (!parsed) return no_token(OutcomeClass::configuration, "the answer of token_url is no JSON");
  const auto* token = core::as<std::string>(core::find(*parsed, "access_token"));
  if (token == nullptr) {
    return no_token(OutcomeClass::configuration, "the answer of token_url has no access_token");
  }
  opened.add(*token);
  if (!fit_for_header(*token)) {
    return no_token(OutcomeClass::configuration, "the access_token does not fit in a header");
  }
  const auto* type = core::as<std::string>(core::find(*parsed, "token_type"));
  if (type != nullptr && !is_bearer(*type)) {
    return no_token(OutcomeClass::configuration, "expected the token_type Bearer, found " + *type);
  }
  const Duration life = life_of(*parsed).value_or(kUnstated);
  token_ = *token;
  until_ = clock_.monotonic() + life - std::min(kSpare, life / 5);
  return {token_, false, {}};
}

}  // namespace tocsin::actions
