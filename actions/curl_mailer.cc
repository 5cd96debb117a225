// SMTP by libcurl: one easy handle per mail.
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "actions/curl_global.h"
#include "actions/mailer.h"
#include "actions/redact.h"

namespace tocsin::actions {
namespace {

struct Transfer {
  const std::string* message = nullptr;
  std::size_t sent = 0;
  bool complete = false;  // libcurl has taken the last byte: the final dot follows
  std::string recipient;  // whose RCPT is waiting for its answer
  std::vector<std::pair<std::string, int>> refused;
  int last_refusal = 0;
  std::string last_answer;  // last line of the server's that refused something
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

// libcurl tells the answer to one RCPT only here. Outgoing lines other than RCPT are not looked at:
// AUTH lines hold the password.
int watch(CURL*, curl_infotype type, char* data, std::size_t size, void* user) noexcept {
  auto& transfer = *static_cast<Transfer*>(user);
  std::string_view text(data, size);
  if (type == CURLINFO_HEADER_OUT && text.starts_with("RCPT TO:<")) {
    transfer.recipient = text.substr(9, text.find('>') - 9);
  } else if (type == CURLINFO_HEADER_IN && size >= 4 && text[3] == ' ') {
    int code = 0;
    std::from_chars(text.data(), text.data() + 3, code);
    if (code >= 400) {
      transfer.last_answer = printable(text, 500);
      transfer.last_refusal = code;
      if (!transfer.recipient.empty()) transfer.refused.emplace_back(transfer.recipient, code);
    }
    transfer.recipient.clear();
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
      return MailFailure::login;
    default:
      break;
  }
  if (transfer.last_refusal >= 400) return MailFailure::refused;
  return transfer.complete ? MailFailure::no_answer : MailFailure::unreachable;
}

class CurlMailer final : public Mailer {
 public:
  MailResult send(const Mail& mail) override {
    curl_global();
    MailResult out;
    std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle(curl_easy_init(), curl_easy_cleanup);
    std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> to(nullptr, curl_slist_free_all);
    for (const std::string& address : mail.to) {
      curl_slist* longer = curl_slist_append(to.get(), ("<" + address + ">").c_str());
      if (longer == nullptr) break;
      (void)to.release();
      to.reset(longer);
    }
    if (!handle || !to) return {MailFailure::unreachable, 0, {}, "no memory for a mail"};
    Transfer transfer;
    transfer.message = &mail.message;
    configure(handle.get(), mail, to.get(), transfer);
    std::array<char, CURL_ERROR_SIZE> words{};
    curl_easy_setopt(handle.get(), CURLOPT_ERRORBUFFER, words.data());
    const CURLcode code = curl_easy_perform(handle.get());
    out.refused = std::move(transfer.refused);
    if (code == CURLE_OK) {
      out.code = 250;
      return out;
    }
    out.failure = failure_of(code, transfer);
    out.code = out.failure == MailFailure::refused || out.failure == MailFailure::login
                   ? transfer.last_refusal
                   : 0;
    out.detail = !transfer.last_answer.empty() ? transfer.last_answer
                 : words[0] != '\0'            ? std::string(words.data())
                                               : std::string(curl_easy_strerror(code));
    return out;
  }

 private:
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
    if (!mail.username.empty()) {
      curl_easy_setopt(handle, CURLOPT_USERNAME, mail.username.c_str());
      curl_easy_setopt(handle, CURLOPT_PASSWORD, mail.password.c_str());
    }
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
};

}  // namespace

std::unique_ptr<Mailer> curl_mailer() { return std::make_unique<CurlMailer>(); }

}  // namespace tocsin::actions
