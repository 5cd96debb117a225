// Mails each notification to people, as text and HTML, one thread per incident.
//
// Sends       one SMTP transaction, one per recipient when that failed; multipart/alternative,
//             quoted-printable.
// Retries     4yz answers and lost connections; a recipient refused with 5yz is given up alone, one
//             refused with 4yz is a delivery of its own.
// Idempotent  Message-ID is <notification id@domain> in every attempt.
// Needs       an SMTP server; AUTH only over TLS.
// Source      RFC 5321, 5322, 2045, 2047, 3834 (Auto-Submitted).

#include "actions/contract/descriptor.h"
#include "actions/message/answer_links.h"
#include "actions/message/headline.h"
#include "actions/message/message.h"
#include "actions/message/rendered.h"
#include "actions/transport/mail_round.h"
#include "actions/transport/mailer.h"
#include "actions/transport/mime.h"
#include "actions/transport/redact.h"
#include "actions/transport/smtp_login.h"

namespace tocsin::actions {
namespace {

struct EmailConfig final : ActionConfig {
  std::vector<std::string> to;
  std::string from;
  std::string host = "localhost";
  std::uint32_t port = 587;
  std::string tls = "auto";
  std::string username;
  config::Secret password;
  std::string auth = "auto";
  std::string ca_file;
  std::string helo;

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const override;
  [[nodiscard]] MailTls mode() const {
    if (tls == "none") return MailTls::none;
    if (tls == "starttls_opportunistic") return MailTls::starttls_opportunistic;
    return tls == "implicit" || (tls == "auto" && port == 465) ? MailTls::implicit
                                                               : MailTls::starttls_required;
  }
};

class Email final : public core::Action {
 public:
  Email(const EmailConfig& cfg, const Environment& environment, const CommonConfig& common)
      : cfg_(cfg),
        common_(common),
        clock_(*environment.clock),
        sender_{environment.cluster, environment.external_url, environment.place},
        mailer_(environment.mailer) {
    sender_.links = environment.answers.links;
    const std::string host = environment.host.empty() ? "localhost" : environment.host;
    from_ = parse_mailbox(cfg_.from).value_or(Mailbox{"Tocsin", "tocsin@" + host});
    if (cfg_.helo.empty()) cfg_.helo = host;
    for (const std::string& text : cfg_.to) {
      if (auto mailbox = parse_mailbox(text)) to_.push_back(std::move(*mailbox));
    }
    if (mailer_ == nullptr) {
      owned_ = curl_mailer();
      mailer_ = owned_.get();
    }
  }

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    return stored(fitting(notification, common_.max_payload.count,
                          [&](const auto& one) { return form(one); }));
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t attempt,
                               std::chrono::milliseconds budget) override {
    core::AttemptOutcome bad;
    bad.outcome = core::OutcomeClass::configuration;
    bad.code = "configuration";
    const auto rendered = parse_rendered(notification.rendered.empty() ? *render(notification)
                                                                       : notification.rendered);
    if (!rendered) return bad.detail = rendered.error().message, bad;
    Mail mail;
    if (cfg_.password.set()) {
      const auto password = cfg_.password.reveal();
      if (!password) return bad.detail = password.error().in("password").message, bad;
      mail.password = *password;
    }
    std::vector<std::string> signatures;
    fill(mail, *rendered, notification, signatures);
    mail.timeout = budget;
    core::AttemptOutcome out =
        send_round(*mailer_, mail, recipients_of(addresses(), notification.handles), attempt,
                   [this] { return clock_.monotonic(); });
    if (out.outcome == core::OutcomeClass::delivered) {
      out.handles.emplace(out.handles.begin(), "message_id", message_id(notification));
    }
    signatures.push_back(mail.password);
    out.detail = printable(redact(std::move(out.detail), signatures), 2048);
    return out;
  }

 private:
  // Of every attempt and every recipient: "<notification id>/<recipient>" is a delivery of the same.
  [[nodiscard]] std::string message_id(const core::Notification& notification) const {
    const std::string& id = notification.notification_id;
    return "<" + id.substr(0, id.find('/')) + from_.address.substr(from_.address.find('@')) + ">";
  }

  [[nodiscard]] Rendered form(const core::Notification& notification) const {
    const std::string boundary = "=_" + notification.notification_id;
    const auto part = [&](const char* type, const std::string& text) {
      return "--" + boundary + "\r\nContent-Type: " + type +
             "; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
             quoted_printable(text) + "\r\n";
    };
    Rendered out;
    out.content_type = "multipart/alternative; boundary=\"" + boundary + "\"";
    out.body = part("text/plain", text_body(notification, sender_)) +
               part("text/html", html_body(notification, sender_)) + "--" + boundary + "--\r\n";
    out.fields = {{"subject", headline(notification)},
                  {"date", mail_date(notification.decided_at)}};
    return out;
  }

  void fill(Mail& mail, const Rendered& rendered, const core::Notification& notification,
            std::vector<std::string>& signatures) {
    mail.host = cfg_.host;
    mail.port = cfg_.port;
    mail.tls = cfg_.mode();
    mail.helo = cfg_.helo;
    mail.username = cfg_.username;
    mail.ca_file = cfg_.ca_file;
    mail.from = from_.address;
    mail.connect_timeout =
        std::chrono::duration_cast<std::chrono::milliseconds>(common_.connect_timeout);
    mail.auth = cfg_.auth;

    std::string to;
    for (const Mailbox& mailbox : to_)
      to += to.empty() ? to_header(mailbox, 4) : ",\r\n " + to_header(mailbox, 1);
    std::string& text = mail.message;
    text = "Date: " + rendered.field("date") + "\r\nFrom: " + to_header(from_, 6) +
           "\r\nTo: " + to + "\r\nSubject: " + header_text(rendered.field("subject"), 9) +
           "\r\nMessage-ID: " + message_id(notification) + "\r\n";
    for (const auto& [name, value] : notification.handles) {
      // The incident's first mail is the root of the thread.
      if (name != "message_id" || value == message_id(notification)) continue;
      text += "In-Reply-To: " + value + "\r\nReferences: " + value + "\r\n";
    }
    std::string type = rendered.content_type;
    if (const std::size_t at = type.find("; "); at != std::string::npos)
      type.insert(at + 1, "\r\n");
    text += "MIME-Version: 1.0\r\nContent-Type: " + type +
            "\r\nAuto-Submitted: auto-generated\r\nX-Auto-Response-Suppress: All\r\n"
            "Precedence: bulk\r\n\r\n" +
            signed_links_in_lines(rendered.body, notification, sender_, signatures);
  }

  [[nodiscard]] std::vector<std::string> addresses() const {
    std::vector<std::string> all;
    for (const Mailbox& mailbox : to_) all.push_back(mailbox.address);
    return all;
  }

  EmailConfig cfg_;
  CommonConfig common_;
  core::Clock& clock_;
  Sender sender_;
  std::unique_ptr<Mailer> owned_;
  Mailer* mailer_;
  Mailbox from_;
  std::vector<Mailbox> to_;
};

core::Result<std::unique_ptr<core::Action>> EmailConfig::build(const Environment& environment,
                                                               const IntegrationName& /*name*/,
                                                               const CommonConfig& common) const {
  return std::unique_ptr<core::Action>(std::make_unique<Email>(*this, environment, common));
}

void check(config::Reader& in, const EmailConfig& cfg) {
  for (const std::string& text : cfg.to) {
    if (!parse_mailbox(text)) in.error("to", "\"" + printable(text, 100) + "\" is no mail address");
  }
  if (!in.describing() && in.has("to") && cfg.to.empty())
    in.error("to", "expected at least one address");
  if (!cfg.from.empty() && !parse_mailbox(cfg.from)) {
    in.error("from", "\"" + printable(cfg.from, 100) + "\" is no mail address");
  }
  if (cfg.host.empty() || cfg.host.find_first_of("/@ \r\n") != std::string::npos) {
    in.error("host", "expected a host name or an address");
  }
  if (!cfg.username.empty() && cfg.mode() == MailTls::none) {
    in.error("username", "a password is only sent over TLS; choose another tls mode");
  }
  if (!cfg.username.empty() && cfg.mode() == MailTls::starttls_opportunistic) {
    in.error("username", "tls: starttls_opportunistic may send the password in clear");
  }
  if (cfg.auth != "auto" && cfg.username.empty()) in.error("auth", "username is missing");
  if (cfg.password.set() && cfg.username.empty()) in.error("password", "username is missing");
}

std::shared_ptr<const ActionConfig> read_email(config::Reader& in) {
  auto cfg = std::make_shared<EmailConfig>();
  in.required("to", cfg->to, "recipients, each a@b.c or Name <a@b.c>");
  in.optional("from", cfg->from, "sender; default tocsin@<this host>");
  in.optional("host", cfg->host, "SMTP server");
  in.optional("port", cfg->port, config::between<std::uint32_t>(1, 65535), "its port");
  in.optional(
      "tls", cfg->tls,
      config::one_of({"auto", "starttls_required", "starttls_opportunistic", "implicit", "none"}),
      "auto: implicit on port 465, else starttls_required");
  in.optional("username", cfg->username, "for AUTH");
  in.secret("password", cfg->password, "for AUTH");
  in.optional("auth", cfg->auth, config::one_of(smtp_login_names()),
              "how to log in; auto: what the server offers, one after the other");
  in.optional("ca_file", cfg->ca_file, "authorities to trust instead of the system's");
  in.optional("helo", cfg->helo, "name said in EHLO; default this host's");
  check(in, *cfg);
  return cfg;
}

}  // namespace

ActionDescriptor email() {
  return {"email",
          "Mails people, one thread per incident.",
          {.human = true, .stateful = false},
          read_email,
          {}};
}

}  // namespace tocsin::actions
