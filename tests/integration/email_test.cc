// Mail against real and scripted SMTP servers on loopback.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/integration/real_bench.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;
using core::OutcomeClass;
using nlohmann::json;
using tests::ChildProgram;

struct MailServer {
  MailServer()
      : program({"/usr/bin/python3", "tests/support/smtp_receiver.py"}), port(program.port()) {}
  [[nodiscard]] std::string settings() const {
    return "{to: [ops@example.com, ada@example.org], from: tocsin@example.net, host: 127.0.0.1, "
           "port: " +
           std::to_string(port) + ", tls: none, connect_timeout: 2s}";
  }
  json mail() { return json::parse(program.line_with("{")); }
  ChildProgram program;
  int port;
};

TEST(RealEmail, ArrivesReadableAndThreaded) {
  MailServer server;
  RealBench bench;
  const auto email = bench.make("email", server.settings());
  auto first = sample_notification();
  first.issues[0].issue.summary = "Größe: " + std::string(300, 'x') + "\n.\nende";
  const core::AttemptOutcome out = deliver_within(*email, first, 10s);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered) << out.detail;
  const json mail = server.mail();
  EXPECT_THAT(mail["subject"].get<std::string>(),
              ::testing::StartsWith("[error] digits: Größe: xxx"));
  EXPECT_THAT(mail["to"].get<std::vector<std::string>>(),
              ElementsAre("ops@example.com", "ada@example.org"));
  EXPECT_EQ(mail["headers"]["message-id"], "<ntf_one@example.net>");
  EXPECT_EQ(mail["headers"]["auto-submitted"], "auto-generated");
  EXPECT_THAT(mail["body"].get<std::string>(), HasSubstr("Größe: " + std::string(300, 'x')));
  EXPECT_THAT(mail["body"].get<std::string>(), HasSubstr("step 412 (train)"));

  auto close = sample_notification("ntf_two", core::NotificationKind::close);
  close.handles = out.handles;
  EXPECT_EQ(deliver_within(*email, close, 10s).outcome, OutcomeClass::delivered);
  const json reply = server.mail();
  EXPECT_EQ(reply["headers"]["in-reply-to"], "<ntf_one@example.net>");
  EXPECT_EQ(reply["headers"]["references"], "<ntf_one@example.net>");
}

TEST(RealEmail, TellsLaterFromNever) {
  MailServer server;
  RealBench bench;
  const auto email = bench.make("email", server.settings());
  const auto answered = [&](const std::string& answer, std::chrono::milliseconds budget = 10s) {
    server.program.say(answer);
    for (int i = 0; i < 200; ++i) {
      const core::AttemptOutcome out = deliver_within(*email, sample_notification(), budget);
      if (out.outcome != OutcomeClass::delivered) return out;
    }
    return core::AttemptOutcome{};
  };
  const core::AttemptOutcome later = answered("answer 451");
  EXPECT_EQ(later.outcome, OutcomeClass::transient);
  EXPECT_EQ(later.code, "smtp 451");
  const core::AttemptOutcome never = answered("answer 554");
  EXPECT_EQ(never.outcome, OutcomeClass::bad_payload);
  EXPECT_EQ(never.code, "smtp 554");
  const core::AttemptOutcome silent = answered("hang 1000", 1500ms);  // after the final dot
  EXPECT_EQ(silent.outcome, OutcomeClass::unknown);
}

TEST(RealEmail, ARefusedConnectionIsTransient) {
  std::string settings;
  {
    MailServer server;
    settings = server.settings();
  }
  RealBench bench;
  const auto email = bench.make("email", settings);
  EXPECT_EQ(deliver_within(*email, sample_notification(), 5s).outcome, OutcomeClass::transient);
}

// An SMTP server that answers sessions, one after the other, as told: what aiosmtpd cannot be made to
// say. An answer "" closes the connection.
class ScriptedSmtp {
 public:
  using Answers = std::vector<std::pair<std::string, std::string>>;
  explicit ScriptedSmtp(Answers answers) : answers_(std::move(answers)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(listener_, 1);
    socklen_t size = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedSmtp() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  [[nodiscard]] std::uint32_t port() const { return port_; }
  /// How many lines that began so were said.
  [[nodiscard]] std::size_t heard(const std::string& beginning) {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(lines_.begin(), lines_.end(),
                      [&](const auto& line) { return line.starts_with(beginning); }));
  }

 private:
  void serve() {
    for (int peer = 0; (peer = accept(listener_, nullptr, nullptr)) >= 0;) {
      serve(peer);
      close(peer);
    }
  }
  void serve(int peer) {
    say(peer, "220 test\r\n");
    std::string buffer;
    char bytes[4096];
    bool data = false;
    for (ssize_t count = 0; (count = ::read(peer, bytes, sizeof bytes)) > 0;) {
      buffer.append(bytes, static_cast<std::size_t>(count));
      for (auto end = buffer.find("\r\n"); end != std::string::npos; end = buffer.find("\r\n")) {
        const std::string line = buffer.substr(0, end);
        buffer.erase(0, end + 2);
        if (data && line != ".") continue;
        {
          const std::lock_guard lock(mutex_);
          lines_.push_back(line);
        }
        const std::string said = data ? "250 taken\r\n" : answer(line);
        if (said.empty()) return;
        say(peer, said);
        data = !data && line == "DATA";
      }
    }
  }
  std::string answer(const std::string& line) const {
    for (const auto& [beginning, text] : answers_) {
      if (line.starts_with(beginning)) return text;
    }
    if (line == "DATA") return "354 go on\r\n";
    return "250 ok\r\n";
  }
  static void say(int peer, const std::string& text) {
    (void)!::write(peer, text.data(), text.size());
  }

  std::vector<std::pair<std::string, std::string>> answers_;
  std::mutex mutex_;  // guards lines_
  std::vector<std::string> lines_;
  int listener_ = -1;
  std::uint32_t port_ = 0;
  std::thread thread_;
};

Mail mail_to(std::uint32_t port) {
  Mail mail;
  mail.host = "127.0.0.1";
  mail.port = port;
  mail.tls = MailTls::none;
  mail.helo = "h1";
  mail.from = "tocsin@example.net";
  mail.to = {"ops@example.com", "ada@example.org"};
  mail.message = "Subject: x\r\n\r\nbody\r\n";
  mail.timeout = 5s;
  return mail;
}

TEST(RealMailer, NamesTheRecipientThatWasRefused) {
  ScriptedSmtp server(ScriptedSmtp::Answers{{"RCPT TO:<ada", "550 5.1.1 no such user\r\n"}});
  const MailResult result = curl_mailer()->send(mail_to(server.port()));
  EXPECT_EQ(result.failure, MailFailure::none) << result.detail;
  EXPECT_THAT(result.refused, ElementsAre(std::pair<std::string, int>("ada@example.org", 550)));
}

TEST(RealMailer, ASenderThatIsRefusedIsRefusedForAll) {
  ScriptedSmtp server(ScriptedSmtp::Answers{{"MAIL FROM", "452 4.3.1 no space\r\n"}});
  const MailResult result = curl_mailer()->send(mail_to(server.port()));
  EXPECT_EQ(result.failure, MailFailure::refused);
  EXPECT_EQ(result.code, 452);
  EXPECT_EQ(classify(result).outcome, OutcomeClass::transient);
}

TEST(RealMailer, AllRecipientsRefusedIsNoDelivery) {
  ScriptedSmtp server(ScriptedSmtp::Answers{{"RCPT TO", "450 4.2.1 later\r\n"}});
  const MailResult result = curl_mailer()->send(mail_to(server.port()));
  EXPECT_EQ(result.failure, MailFailure::refused);
  EXPECT_EQ(result.refused.size(), 2u);
}

TEST(RealMailer, AWrongPasswordIsALoginFailureAndIsNotRepeatedInItsWords) {
  ScriptedSmtp server(
      {{"EHLO", "250-test\r\n250 AUTH PLAIN LOGIN\r\n"}, {"AUTH", "535 5.7.8 no\r\n"}});
  Mail mail = mail_to(server.port());
  mail.username = "u";
  mail.password = "canary-pw";
  const MailResult result = curl_mailer()->send(mail);
  EXPECT_EQ(result.failure, MailFailure::login) << result.detail;
  EXPECT_EQ(result.code, 535);
  EXPECT_THAT(result.detail, Not(HasSubstr("canary")));
}

TEST(RealMailer, AnAnswerToOneRecipientDecidesNothingThatComesLater) {
  ScriptedSmtp server({{"RCPT TO:<ops", "550 5.1.1 no such user\r\n"}, {"DATA", ""}});
  const MailResult result = curl_mailer()->send(mail_to(server.port()));
  EXPECT_EQ(result.failure, MailFailure::unreachable) << result.detail;
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(result.recipients_asked);
  EXPECT_EQ(classify(result).outcome, OutcomeClass::transient);
}

TEST(RealMailer, A421EndsTheSessionWhateverIsSaidNext) {
  ScriptedSmtp server(
      ScriptedSmtp::Answers{{"RCPT TO:<ops", "421 4.3.2 closing\r\n"}, {"RCPT TO:<ada", ""}});
  const MailResult result = curl_mailer()->send(mail_to(server.port()));
  EXPECT_EQ(result.failure, MailFailure::refused) << result.detail;
  EXPECT_EQ(result.code, 421);
  EXPECT_EQ(classify(result).outcome, OutcomeClass::throttled);
}

Mail login_to(std::uint32_t port, const std::string& auth = "auto") {
  Mail mail = mail_to(port);
  mail.username = "u";
  mail.password = "canary-pw";
  mail.auth = auth;
  return mail;
}

// libcurl would take GSSAPI, NTLM or CRAM-MD5 where they are offered, and fail.
TEST(RealMailer, LogsInByWhatWorksOfWhatIsOffered) {
  for (const char* offered :
       {"GSSAPI NTLM CRAM-MD5 PLAIN LOGIN", "GSSAPI NTLM CRAM-MD5 PLAIN", "NTLM PLAIN XOAUTH2"}) {
    ScriptedSmtp server({{"EHLO", "250-test\r\n250 AUTH " + std::string(offered) + "\r\n"},
                         {"AUTH PLAIN", "334 \r\n"},
                         {"AHUA", "235 2.7.0 welcome\r\n"},
                         {"AUTH ", "535 5.7.8 no\r\n"}});
    const MailResult result = curl_mailer()->send(login_to(server.port()));
    EXPECT_EQ(result.failure, MailFailure::none) << offered << result.detail;
  }
}

TEST(RealMailer, TriesTheNextMechanismWhenOneFails) {
  for (const char* plain : {"535 5.7.8 no\r\n", "504 5.5.4 cannot\r\n", ""}) {
    ScriptedSmtp server({{"EHLO", "250-test\r\n250-AUTH GSSAPI PLAIN LOGIN\r\n250 8BITMIME\r\n"},
                         {"AUTH PLAIN", plain},
                         {"AUTH LOGIN", "334 UGFzc3dvcmQ6\r\n"},
                         {"Y2FuYXJ5LXB3", "235 2.7.0 welcome\r\n"},
                         {"dQ==", "334 UGFzc3dvcmQ6\r\n"},
                         {"AUTH ", "535 5.7.8 no\r\n"}});
    const auto mailer = curl_mailer();
    const MailResult result = mailer->send(login_to(server.port()));
    EXPECT_EQ(result.failure, MailFailure::none) << plain << result.detail;
    EXPECT_EQ(mailer->send(login_to(server.port())).failure, MailFailure::none);
    EXPECT_EQ(server.heard("AUTH PLAIN"), 1U) << "what worked is tried first";
  }
}

TEST(RealMailer, TakesTheMechanismThatItIsTold) {
  ScriptedSmtp server({{"EHLO", "250-test\r\n250 AUTH PLAIN LOGIN\r\n"},
                       {"AUTH PLAIN", "334 \r\n"},
                       {"AHUA", "235 2.7.0 welcome\r\n"}});
  EXPECT_EQ(curl_mailer()->send(login_to(server.port(), "cram-md5")).failure, MailFailure::login);
  EXPECT_EQ(server.heard("AUTH"), 0U);
  EXPECT_EQ(curl_mailer()->send(login_to(server.port(), "plain")).failure, MailFailure::none);
}

TEST(RealMailer, ALoginThatIsPutOffIsNoWrongPassword) {
  ScriptedSmtp server({{"EHLO", "250-test\r\n250 AUTH PLAIN\r\n"},
                       {"AUTH PLAIN", "454 4.7.0 temporary failure\r\n"}});
  const MailResult result = curl_mailer()->send(login_to(server.port()));
  EXPECT_EQ(classify(result).outcome, OutcomeClass::transient) << result.detail;
}

TEST(RealMailer, SendsNothingWhenTlsIsRequiredAndNotOffered) {
  ScriptedSmtp server(ScriptedSmtp::Answers{});
  Mail mail = mail_to(server.port());
  mail.tls = MailTls::starttls_required;
  EXPECT_EQ(curl_mailer()->send(mail).failure, MailFailure::tls);
}

}  // namespace
}  // namespace tocsin::actions
