// SMTP by libcurl: one easy handle per mail.
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <set>
#include <string>

#include "actions/transport/curl_global.h"
#include "actions/transport/mailer.h"
#include "actions/transport/redact.h"
#include "actions/transport/smtp_login.h"
#include "core/mutex.h"

namespace tocsin::actions {
namespace {

struct Transfer {
  const std::string* message = nullptr;
  std::size_t sent = 0;
  bool complete = false;  // libcurl has taken the last byte: the final dot follows
  bool ehlo = false;      // the answer to EHLO is coming
  bool logging_in = false;
  bool logged_in = false;
  bool leaving = false;   // QUIT was said: what is answered to it decides nothing
  std::string recipient;  // whose RCPT is waiting for its answer
  bool recipients_asked = false;
  std::vector<std::pair<std::string, int>> refused;
  int refusal = 0;          // the answer to what was said last, if it refused that
  std::string last_answer;  // its last line
  std::string offered;      // behind AUTH in the answer to EHLO
};

std::size_t give_message(char* out, std::size_t size, std::size_t count, void* user) noexcept {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::size_t left = transfer.message->size() - transfer.sent;
  const std::size_t now = std::min(size * count, left);
  std::copy_n(transfer.message->data() + transfer.sent, now, out);
  transfer.sent += now;
  transfer.complete = transfer.complete || now == 0;
  return now;
}

void said(Transfer& transfer, std::string_view line) {
  if (line.starts_with("QUIT")) transfer.leaving = true;
  if (transfer.leaving) return;
  transfer.ehlo = line.starts_with("EHLO ");
  transfer.logging_in = !transfer.logged_in && (transfer.logging_in || line.starts_with("AUTH "));
  transfer.recipient.clear();
  if (line.starts_with("RCPT TO:<")) {
    transfer.recipient = line.substr(9, line.find('>') - 9);
    transfer.recipients_asked = true;
  }
  // An answer decides about what it was given to. 421 ends the connection, whatever is said next.
  if (transfer.refusal != 421) transfer.refusal = 0;
}

void heard(Transfer& transfer, std::string_view line) {
  if (transfer.leaving || line.size() < 4) return;
  if (transfer.ehlo && (line.substr(4).starts_with("AUTH") || line.substr(4).starts_with("auth"))) {
    transfer.offered = line.substr(std::min<std::size_t>(line.size(), 9));
  }
  if (line[3] != ' ') return;
  int code = 0;
  std::from_chars(line.data(), line.data() + 3, code);
  if (code == 235) {
    transfer.logged_in = true;
    transfer.logging_in = false;
  }
  if (code >= 400) {
    transfer.last_answer = printable(line, 500);
    transfer.refusal = code;
    if (!transfer.recipient.empty()) transfer.refused.emplace_back(transfer.recipient, code);
  }
  transfer.recipient.clear();
}

// libcurl tells the answer to one RCPT only here. Of outgoing lines only the first word and the
// recipient are looked at: AUTH lines hold the password.
int watch(CURL*, curl_infotype type, char* data, std::size_t size, void* user) noexcept {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view text(data, size);
  if (type == CURLINFO_HEADER_OUT) {
    said(transfer, text);
  } else if (type == CURLINFO_DATA_OUT) {
    said(transfer, "");
  } else if (type == CURLINFO_HEADER_IN) {
    heard(transfer, text);
  }
  return 0;
}

std::size_t discard(char*, std::size_t size, std::size_t count, void*) noexcept {
  return size * count;
}

MailFailure failure_of(CURLcode code, const Transfer& transfer) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_USE_SSL_FAILED:
      return MailFailure::tls;
    case CURLE_LOGIN_DENIED:
      // 4yz: not now, which says nothing of the password.
      return transfer.refusal >= 400 && transfer.refusal < 500 ? MailFailure::refused
                                                               : MailFailure::login;
    default:
      break;
  }
  if (transfer.logging_in && transfer.refusal >= 500) return MailFailure::login;
  if (transfer.refusal >= 400) return MailFailure::refused;
  return transfer.complete ? MailFailure::no_answer : MailFailure::unreachable;
}

class CurlMailer final : public Mailer {
 public:
  MailResult send(const Mail& mail) override {
    curl_global();
    Round round;
    if (mail.username.empty()) return once(mail, "", round);
    round.left = mail.timeout;
    std::set<std::string> tried;
    MailResult out;
    for (std::string login = worked(); round.left.count() > 0; login.clear()) {
      const auto known = smtp_logins(mail.auth, round.offered);
      const auto next = std::find_if(known.begin(), known.end(),
                                     [&](const auto& one) { return !tried.contains(one); });
      if (login.empty() && next != known.end()) login = *next;
      if (login.empty() || !tried.insert(login).second) break;
      out = once(mail, login, round);
      if (round.logged_in) remember(login);
      if (round.logged_in || !round.login_failed) break;
    }
    return out;
  }

 private:
  // What one connection after the other finds out.
  struct Round {
    std::string offered;  // behind AUTH in the answer to EHLO
    std::chrono::milliseconds left{};
    bool logged_in = false;
    bool login_failed = false;  // by this mechanism; another one may do
  };

  std::string worked() {
    const core::MutexLock lock(mutex_);
    return worked_;
  }
  void remember(const std::string& login) {
    const core::MutexLock lock(mutex_);
    worked_ = login;
  }

  static MailResult once(const Mail& mail, const std::string& login, Round& round) {
    MailResult out;
    std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle(curl_easy_init(), curl_easy_cleanup);
    std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> to(nullptr, curl_slist_free_all);
    for (const std::string& address : mail.to) {
      curl_slist* longer = curl_slist_append(to.get(), ("<" + address + ">").c_str());
      if (longer == nullptr) break;
      (void)to.release();
      to.reset(longer);
    }
    if (!handle || !to) {
      out.failure = MailFailure::unreachable;
      out.detail = "no memory for a mail";
      return out;
    }
    Transfer transfer;
    transfer.message = &mail.message;
    configure(handle.get(), mail, to.get(), transfer);
    if (!login.empty()) log_in(handle.get(), mail, login, round.left);
    std::array<char, CURL_ERROR_SIZE> words{};
    curl_easy_setopt(handle.get(), CURLOPT_ERRORBUFFER, words.data());
    const CURLcode code = curl_easy_perform(handle.get());
    out.refused = std::move(transfer.refused);
    out.recipients_asked = transfer.recipients_asked;
    curl_off_t took = 0;  // µs
    curl_easy_getinfo(handle.get(), CURLINFO_TOTAL_TIME_T, &took);
    round.left -= std::chrono::milliseconds(took / 1000);
    if (!transfer.offered.empty()) round.offered = transfer.offered;
    round.logged_in = transfer.logged_in;
    if (code == CURLE_OK) {
      out.code = 250;
      return out;
    }
    out.failure = failure_of(code, transfer);
    // Also where the server hangs up on a mechanism that it offers and cannot do.
    round.login_failed =
        out.failure == MailFailure::login ||
        (transfer.logging_in && transfer.refusal < 400 && out.failure == MailFailure::unreachable);
    out.code = out.failure == MailFailure::refused || out.failure == MailFailure::login
                   ? transfer.refusal
                   : 0;
    const bool answered = out.code > 0 || out.failure == MailFailure::login;
    out.detail = answered && !transfer.last_answer.empty() ? transfer.last_answer
                 : words[0] != '\0'                        ? std::string(words.data())
                                                           : std::string(curl_easy_strerror(code));
    return out;
  }

  static void log_in(CURL* handle, const Mail& mail, const std::string& login,
                     std::chrono::milliseconds left) {
    curl_easy_setopt(handle, CURLOPT_USERNAME, mail.username.c_str());
    curl_easy_setopt(handle, login == "AUTH=XOAUTH2" ? CURLOPT_XOAUTH2_BEARER : CURLOPT_PASSWORD,
                     mail.password.c_str());
    curl_easy_setopt(handle, CURLOPT_LOGIN_OPTIONS, login.c_str());
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(left.count())));
  }

  static void configure(CURL* handle, const Mail& mail, curl_slist* to, Transfer& transfer) {
    const bool implicit = mail.tls == MailTls::implicit;
    const std::string url = std::string(implicit ? "smtps" : "smtp") + "://" + mail.host + ":" +
                            std::to_string(mail.port) + "/" + percent_encode(mail.helo);
    curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    curl_easy_setopt(handle, CURLOPT_PROXY, "");
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    const long use_tls = mail.tls == MailTls::none                     ? CURLUSESSL_NONE
                         : mail.tls == MailTls::starttls_opportunistic ? CURLUSESSL_TRY
                                                                       : CURLUSESSL_ALL;
    curl_easy_setopt(handle, CURLOPT_USE_SSL, use_tls);
    curl_easy_setopt(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (!mail.ca_file.empty()) curl_easy_setopt(handle, CURLOPT_CAINFO, mail.ca_file.c_str());
    curl_easy_setopt(handle, CURLOPT_MAIL_FROM, ("<" + mail.from + ">").c_str());
    curl_easy_setopt(handle, CURLOPT_MAIL_RCPT, to);
    curl_easy_setopt(handle, CURLOPT_MAIL_RCPT_ALLLOWFAILS, 1L);
    curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(handle, CURLOPT_READFUNCTION, give_message);
    curl_easy_setopt(handle, CURLOPT_READDATA, &transfer);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, discard);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(mail.timeout.count()));
    curl_easy_setopt(handle, CURLOPT_SERVER_RESPONSE_TIMEOUT,
                     std::max(1L, static_cast<long>(mail.timeout.count() / 1000)));
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(std::min(mail.connect_timeout, mail.timeout).count()));
    curl_easy_setopt(handle, CURLOPT_VERBOSE, 1L);  // turns `watch` on; nothing is printed
    curl_easy_setopt(handle, CURLOPT_DEBUGFUNCTION, watch);
    curl_easy_setopt(handle, CURLOPT_DEBUGDATA, &transfer);
  }

  core::Mutex mutex_;
  std::string worked_ GUARDED_BY(mutex_);  // the login that the server took last
};

}  // namespace

std::unique_ptr<Mailer> curl_mailer() { return std::make_unique<CurlMailer>(); }

}  // namespace tocsin::actions
