// Port: one SMTP transaction, and what it means for a delivery. Internal to actions.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/action.h"

namespace tocsin::actions {

enum class MailTls { starttls_required, starttls_opportunistic, implicit, none };

struct Mail {
  std::string host;
  std::uint32_t port = 587;
  MailTls tls = MailTls::starttls_required;
  std::string helo;
  std::string username;  // empty: no AUTH
  std::string password;
  std::string auth = "auto";  // one of smtp_login_names()
  std::string ca_file;        // empty: the system's
  std::string from;           // envelope addresses
  std::vector<std::string> to;
  std::string message;  // headers and body, CRLF
  std::chrono::milliseconds connect_timeout{3000};
  std::chrono::milliseconds timeout{10000};
};

enum class MailFailure {
  none,         // the server took the message for at least one recipient
  unreachable,  // no name, no connection, lost before the message was complete
  tls,          // certificate refused, or STARTTLS not offered though required
  login,        // 535 and the like, or no way to log in that both sides know
  refused,      // an answer 4yz or 5yz to what was said last: `code`
  no_answer,    // lost after the final dot
};

struct MailResult {
  MailFailure failure = MailFailure::none;
  int code = 0;                   // of the answer that decided it; 0: none did
  bool recipients_asked = false;  // it came to RCPT: before it, the failure is no recipient's
  std::vector<std::pair<std::string, int>> refused;  // recipients refused by RCPT, with code
  std::string detail;                                // redact before use
};

class Mailer {
 public:
  virtual ~Mailer() = default;
  /// Blocks at most mail.timeout. Thread-safe.
  virtual MailResult send(const Mail& mail) = 0;
};

/// The libcurl adapter.
std::unique_ptr<Mailer> curl_mailer();

/// docs/actions/email.md: 421 throttled, 450, 451, 452 and connections lost transient, 535
/// configuration, other 5yz bad payload, after the final dot unknown.
core::AttemptOutcome classify(const MailResult& result);

}  // namespace tocsin::actions
