#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actions/transport/smtp_login.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;
using core::OutcomeClass;

constexpr char kSettings[] =
    "{to: [ops@example.com, 'Ada L <ada@example.org>'], from: Tocsin <tocsin@example.net>, host: "
    "smtp.example.com}";

std::string headers_of(const std::string& message) {
  return message.substr(0, message.find("\r\n\r\n"));
}

TEST(Email, SaysWhatHappenedInSubjectAndText) {
  Workbench bench;
  const auto mail = bench.make("email", kSettings);
  EXPECT_EQ(deliver(*mail, sample_notification()).outcome, OutcomeClass::delivered);
  ASSERT_EQ(bench.mailer.mails.size(), 1u);
  const Mail& sent = bench.mailer.mails[0];
  EXPECT_EQ(sent.host, "smtp.example.com");
  EXPECT_EQ(sent.tls, MailTls::starttls_required);
  EXPECT_EQ(sent.from, "tocsin@example.net");
  EXPECT_THAT(sent.to, ElementsAre("ops@example.com", "ada@example.org"));
  const std::string headers = headers_of(sent.message) + "\r\n";
  for (const char* line :
       {"Subject: [error] digits: gradient/conv1.weight holds 17 values that are NaN\r\n or "
        "infinite "
        "since step 412\r\n",
        "From: \"Tocsin\" <tocsin@example.net>\r\n",
        "To: ops@example.com,\r\n \"Ada L\" <ada@example.org>\r\n",
        "Message-ID: <ntf_one@example.net>\r\n", "Date: Fri, 02 Jan 2026 03:04:05 +0000\r\n",
        "MIME-Version: 1.0\r\n", "Auto-Submitted: auto-generated\r\n",
        "Content-Type: multipart/alternative;\r\n boundary=\"=_ntf_one\"\r\n"}) {
    EXPECT_THAT(headers, HasSubstr(line));
  }
  EXPECT_THAT(headers, Not(HasSubstr("In-Reply-To")));
  for (const char* text :
       {"gradient/conv1.weight holds 17 values that are NaN or infinite.",
        "non_finite =3D 17; limit: >=3D 1", "step 412 (train)", "Lower the learning rate",
        "4e3046d4-8c1f-5278-82e3-ea3595bc5999, attempt 1"}) {
    EXPECT_THAT(sent.message, HasSubstr(text));
  }
}

TEST(Email, AnswersTheFirstMailOfItsIncident) {
  Workbench bench;
  const auto mail = bench.make("email", kSettings);
  const core::AttemptOutcome first = deliver(*mail, sample_notification());
  ASSERT_EQ(first.handles.size(), 1u);
  auto close = sample_notification("ntf_two", core::NotificationKind::close);
  close.handles = first.handles;
  deliver(*mail, close);
  const std::string headers = headers_of(bench.mailer.mails[1].message);
  EXPECT_THAT(headers,
              HasSubstr("Subject: [resolved] digits: gradient/conv1.weight holds 17 values"));
  EXPECT_THAT(headers, HasSubstr("Message-ID: <ntf_two@example.net>"));
  EXPECT_THAT(headers, HasSubstr("In-Reply-To: <ntf_one@example.net>"));
  EXPECT_THAT(headers, HasSubstr("References: <ntf_one@example.net>"));
}

TEST(Email, EveryLineIsShortEnoughAndHasNoBareLineBreak) {
  Workbench bench;
  const auto mail = bench.make("email", kSettings);
  auto notification = sample_notification();
  notification.issues[0].issue.summary = std::string(3000, 'x') + "\n.\r\nBcc: evil@example.com";
  deliver(*mail, notification);
  const std::string& text = bench.mailer.mails[0].message;
  std::size_t begin = 0;
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', begin)) {
    ASSERT_GT(at, 0u);
    EXPECT_EQ(text[at - 1], '\r');
    EXPECT_LE(at - begin, 200u);
    begin = at + 1;
  }
  EXPECT_EQ(begin, text.size());
  EXPECT_THAT(headers_of(text), Not(HasSubstr("evil")));
}

TEST(Email, DataCannotAddHeadersRecipientsOrMarkup) {
  Workbench bench;
  const auto mail = bench.make("email", kSettings);
  auto notification = sample_notification();
  notification.issues[0].issue.run.job = "digits\r\nBcc: evil@example.com";
  notification.issues[0].issue.rule = "<script>alert(1)</script>";
  deliver(*mail, notification);
  const Mail& sent = bench.mailer.mails[0];
  EXPECT_THAT(headers_of(sent.message), Not(HasSubstr("\nBcc")));
  EXPECT_THAT(sent.message.substr(sent.message.find("text/html")), Not(HasSubstr("<script>")));
  EXPECT_EQ(sent.to.size(), 2u);
}

TEST(Email, WritesForeignLettersInTheSubjectAsEncodedWords) {
  Workbench bench;
  const auto mail = bench.make("email", kSettings);
  auto notification = sample_notification();
  notification.issues[0].issue.run.job = "schön";
  deliver(*mail, notification);
  EXPECT_THAT(headers_of(bench.mailer.mails[0].message),
              HasSubstr("Subject: [error] =?UTF-8?B?c2Now7ZuOg==?= gradient/conv1.weight holds"));
}

using Handle = std::pair<std::string, std::string>;

TEST(Email, ARecipientThatIsPutOffGetsADeliveryOfItsOwn) {
  Workbench bench;
  const auto mail = bench.make("email", kSettings);
  bench.mailer.answers.push_back({MailFailure::none, 250, true, {{"ada@example.org", 452}}, ""});
  const core::AttemptOutcome first = deliver(*mail, sample_notification());
  EXPECT_EQ(first.outcome, OutcomeClass::delivered);
  EXPECT_EQ(first.detail, "put off: ada@example.org (452)");
  EXPECT_THAT(first.handles, ElementsAre(Handle("message_id", "<ntf_one@example.net>"),
                                         Handle("put_off", "ada@example.org 452")));

  auto own = sample_notification("ntf_one/ada@example.org");
  own.handles = {{"only_to", "ada@example.org"}};
  bench.mailer.answers.push_back(
      {MailFailure::refused, 452, true, {{"ada@example.org", 452}}, "452 full"});
  const core::AttemptOutcome again = deliver(*mail, own);
  EXPECT_EQ(again.outcome, OutcomeClass::transient);
  EXPECT_TRUE(again.held) << "the server is well: no breaker counts it";
  EXPECT_THAT(again.handles,
              ElementsAre(Handle("fault", "recipient"), Handle("put_off", "ada@example.org 452")));
  EXPECT_EQ(deliver(*mail, own).outcome, OutcomeClass::delivered);
  EXPECT_THAT(bench.mailer.mails[2].to, ElementsAre("ada@example.org"));
  EXPECT_THAT(headers_of(bench.mailer.mails[2].message),
              HasSubstr("Message-ID: <ntf_one@example.net>"));
}

TEST(Email, WhoIsPutOffElsewhereIsNotWaitedFor) {
  Workbench bench;
  const auto mail = bench.make("email", kSettings);
  auto next = sample_notification("ntf_two");
  next.handles = {{"not_to", "ada@example.org"}};
  const core::AttemptOutcome out = deliver(*mail, next);
  EXPECT_THAT(bench.mailer.mails[0].to, ElementsAre("ops@example.com"));
  EXPECT_THAT(out.handles, ElementsAre(Handle("message_id", "<ntf_two@example.net>"),
                                       Handle("put_off", "ada@example.org")));
  // All of them are: all are tried.
  next.handles = {{"not_to", "ada@example.org"}, {"not_to", "ops@example.com"}};
  deliver(*mail, next);
  EXPECT_THAT(bench.mailer.mails[1].to, ElementsAre("ops@example.com", "ada@example.org"));
}

TEST(Email, GivesUpOneRefusedRecipientAndDeliversToTheOther) {
  Workbench bench;
  const auto mail = bench.make("email", kSettings);
  bench.mailer.answers.push_back({MailFailure::none, 250, true, {{"ada@example.org", 550}}, ""});
  const core::AttemptOutcome out = deliver(*mail, sample_notification());
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_EQ(out.detail, "refused: ada@example.org (550)");
}

TEST(Email, WhereAllArePutOffTheServerIsStillWell) {
  Workbench bench;
  const auto mail = bench.make("email", kSettings);
  bench.mailer.answers.push_back({MailFailure::refused,
                                  550,
                                  true,
                                  {{"ops@example.com", 452}, {"ada@example.org", 550}},
                                  "550 no"});
  const core::AttemptOutcome out = deliver(*mail, sample_notification());
  EXPECT_EQ(out.outcome, OutcomeClass::transient);
  EXPECT_EQ(out.code, "smtp 452");
  EXPECT_TRUE(out.held);
}

// What fails for all together is tried for each alone, another one first each time.
TEST(Email, ARecipientAtWhomTheServerHangsUpKeepsTheMailFromNobodyElse) {
  Workbench bench;
  const auto mail = bench.make("email", kSettings);
  const MailResult lost{MailFailure::unreachable, 0, true, {}, "connection lost"};
  bench.mailer.answers = {lost};
  EXPECT_EQ(deliver(*mail, sample_notification()).outcome, OutcomeClass::transient);
  auto notification = sample_notification();
  notification.rendered = *mail->render(notification);
  bench.mailer.answers = {{MailFailure::none, 250, true, {}, ""}, lost};
  const core::AttemptOutcome out = mail->execute(notification, 2, 10s);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_THAT(bench.mailer.mails[1].to, ElementsAre("ops@example.com"));
  EXPECT_THAT(bench.mailer.mails[2].to, ElementsAre("ada@example.org"));
  EXPECT_THAT(out.handles, ElementsAre(Handle("message_id", "<ntf_one@example.net>"),
                                       Handle("put_off", "ada@example.org")));
  bench.mailer.answers = {lost, {MailFailure::none, 250, true, {}, ""}};
  EXPECT_EQ(mail->execute(notification, 3, 10s).outcome, OutcomeClass::delivered);
  EXPECT_THAT(bench.mailer.mails[3].to, ElementsAre("ada@example.org"));
}

TEST(Email, AServerThatIsDownIsNotAskedForEachRecipient) {
  Workbench bench;
  const auto mail = bench.make("email", kSettings);
  auto notification = sample_notification();
  notification.rendered = *mail->render(notification);
  bench.mailer.answers = {{MailFailure::unreachable, 0, false, {}, "refused"}};
  EXPECT_EQ(mail->execute(notification, 5, 10s).outcome, OutcomeClass::transient);
  EXPECT_EQ(bench.mailer.mails.size(), 1U);
}

TEST(Email, HasAClassForEachAnswer) {
  const auto outcome = [](MailFailure failure, int code) {
    return classify(MailResult{failure, code, true, {}, ""}).outcome;
  };
  EXPECT_EQ(outcome(MailFailure::refused, 421), OutcomeClass::throttled);
  for (const int code : {432, 450, 451, 452, 454}) {
    EXPECT_EQ(outcome(MailFailure::refused, code), OutcomeClass::transient);
  }
  for (const int code : {550, 552, 553, 554}) {
    EXPECT_EQ(outcome(MailFailure::refused, code), OutcomeClass::bad_payload);
  }
  EXPECT_EQ(outcome(MailFailure::refused, 530), OutcomeClass::configuration);
  // A greeting or a sender that is refused is no message's fault.
  for (const int code : {550, 553, 554}) {
    EXPECT_EQ(classify(MailResult{MailFailure::refused, code, false, {}, ""}).outcome,
              OutcomeClass::configuration);
  }
  EXPECT_EQ(outcome(MailFailure::login, 535), OutcomeClass::configuration);
  EXPECT_EQ(outcome(MailFailure::tls, 0), OutcomeClass::configuration);
  EXPECT_EQ(outcome(MailFailure::unreachable, 0), OutcomeClass::transient);
  EXPECT_EQ(outcome(MailFailure::no_answer, 0), OutcomeClass::unknown);
}

TEST(Email, ThePasswordAppearsInNoErrorAndNoStoredMessage) {
  Workbench bench;
  const auto mail = bench.make(
      "email", "{to: a@b.c, username: u, password: canary-pw-55, host: smtp.example.com}");
  bench.mailer.answers.push_back({MailFailure::login, 535, false, {}, "535 no: u canary-pw-55"});
  auto notification = sample_notification();
  notification.rendered = *mail->render(notification);
  const core::AttemptOutcome out = mail->execute(notification, 1, 1s);
  EXPECT_EQ(out.outcome, OutcomeClass::configuration);
  EXPECT_THAT(out.detail + notification.rendered, Not(HasSubstr("canary")));
  EXPECT_EQ(bench.mailer.mails[0].password, "canary-pw-55");
}

TEST(Email, ChoosesHowToLogIn) {
  Workbench bench;
  deliver(*bench.make("email", "{to: a@b.c, username: u, password: p, auth: cram-md5}"),
          sample_notification());
  EXPECT_EQ(bench.mailer.mails[0].auth, "cram-md5");
  EXPECT_THAT(
      load("receivers: {a: {email: {to: a@b.c, username: u, password: p, auth: cram}}}").errors,
      HasSubstr("cram-md5"));
  EXPECT_THAT(load("receivers: {a: {email: {to: a@b.c, auth: plain}}}").errors,
              HasSubstr("username is missing"));
}

TEST(SmtpLogin, TriesWhatTheServerOffersTheSimpleOnesFirst) {
  EXPECT_THAT(smtp_logins("auto", ""), ElementsAre("AUTH=PLAIN;AUTH=LOGIN"));
  EXPECT_THAT(smtp_logins("auto", "GSSAPI NTLM CRAM-MD5 LOGIN"),
              ElementsAre("AUTH=LOGIN", "AUTH=CRAM-MD5", "AUTH=NTLM", "AUTH=GSSAPI"));
  EXPECT_THAT(smtp_logins("auto", "login plain xoauth2"),
              ElementsAre("AUTH=PLAIN;AUTH=LOGIN", "AUTH=LOGIN"));
  EXPECT_THAT(smtp_logins("auto", "SOMETHING ELSE"), ElementsAre());
  EXPECT_THAT(smtp_logins("login", "GSSAPI PLAIN"), ElementsAre("AUTH=LOGIN"));
}

TEST(Email, RefusesToSendAPasswordInClear) {
  EXPECT_THAT(
      load("receivers: {a: {email: {to: a@b.c, username: u, password: p, tls: none}}}").errors,
      HasSubstr("only sent over TLS"));
}

TEST(Email, UsesImplicitTlsOnItsPort) {
  Workbench bench;
  const auto mail = bench.make("email", "{to: a@b.c, port: 465}");
  deliver(*mail, sample_notification());
  EXPECT_EQ(bench.mailer.mails[0].tls, MailTls::implicit);
  EXPECT_EQ(bench.mailer.mails[0].from, "tocsin@h1");
}

}  // namespace
}  // namespace tocsin::actions
