// HTTP by libcurl, each connection pinned to a checked address and kept by the thread that made it:
// the threads of a delivery pool belong to one integration and end when they are idle, so that
// connections are neither shared between integrations nor left open for ever.
#include <curl/curl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actions/transport/curl_global.h"
#include "actions/transport/curl_tls.h"
#include "actions/transport/http_client.h"
#include "actions/transport/http_connector.h"
#include "actions/transport/proxy.h"
#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

constexpr long kMaxIdle = 60;   // seconds; many servers and gateways close after that
constexpr long kMaxLife = 300;  // seconds; then the name is looked up again

struct Exchange {
  const HttpRequest* request = nullptr;
  HttpResponse response;
  bool through_proxy = false;
  bool blocked = false;
  bool cut = false;  // more body than we keep
};

std::size_t take_body(char* data, std::size_t size, std::size_t count, void* user) noexcept {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::size_t most = exchange.request->most_body;
  const std::size_t room = most - std::min(most, exchange.response.body.size());
  exchange.response.body.append(data, std::min(size * count, room));
  if (size * count <= room) return size * count;
  exchange.cut = true;
  return 0;  // ends the transfer: we have seen enough
}

std::size_t take_header(char* data, std::size_t size, std::size_t count, void* user) noexcept {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) exchange.response.headers.clear();  // after a 1xx answer
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || exchange.response.headers.size() > 200) return line.size();
  std::string name(line.substr(0, colon));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == '\r' || value.back() == '\n' || value.back() == ' ')) {
    value.remove_suffix(1);
  }
  exchange.response.headers.emplace_back(std::move(name), value);
  return line.size();
}

// The address is the one that will be connected to: a name that resolves differently the next time
// cannot get around the check.
curl_socket_t open_socket(void* user, curlsocktype purpose, struct curl_sockaddr* target) noexcept {
  auto& exchange = *static_cast<Exchange*>(user);
  Address address{};
  if (target->family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&target->addr);
    address = address_from(reinterpret_cast<const std::uint8_t*>(&v4->sin_addr), 4);
  } else if (target->family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&target->addr);
    address = address_from(reinterpret_cast<const std::uint8_t*>(&v6->sin6_addr), 16);
  } else {
    exchange.blocked = true;
    return CURL_SOCKET_BAD;
  }
  const bool allowed = exchange.through_proxy || exchange.request->guard.allows(address);
  if (purpose != CURLSOCKTYPE_IPCXN || !allowed) {
    exchange.blocked = true;
    return CURL_SOCKET_BAD;
  }
  return socket(target->family, target->socktype | SOCK_CLOEXEC, target->protocol);
}

using Lines = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

bool add_line(Lines& lines, const std::string& line) {
  curl_slist* longer = curl_slist_append(lines.get(), line.c_str());
  if (longer == nullptr) return false;
  (void)lines.release();
  lines.reset(longer);
  return true;
}

bool clean(const std::string& text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos;
}

/// With a failure: why the request cannot be sent.
HttpResult add_headers(const HttpRequest& request, const ServerName& target, Lines& headers) {
  const auto no_memory = [] {
    return HttpResult{HttpFailure::unreachable, "no memory for a header", {}};
  };
  std::vector<std::pair<std::string, std::string>> all = request.headers;
  if (request.aws && !request.aws->session_token.empty()) {
    all.emplace_back("x-amz-security-token", request.aws->session_token);
  }
  for (const auto& [name, value] : all) {
    if (!clean(name) || !clean(value)) {
      return {HttpFailure::bad_request, "header " + name + " holds a line break", {}};
    }
    if (!add_line(headers, name + ": " + value)) return no_memory();
  }
  if (!target.host_header.empty() && !add_line(headers, target.host_header)) return no_memory();
  return {};
}

/// Read before each request: a test, or an operator's unit file, sets them for the process.
ProxyEnvironment proxy_environment() {
  const auto value = [](const char* small, const char* large) -> std::string {
    const char* text = std::getenv(small);
    if (text == nullptr && large != nullptr) text = std::getenv(large);
    return text == nullptr ? "" : text;
  };
  return {value("http_proxy", nullptr), value("https_proxy", "HTTPS_PROXY"),
          value("all_proxy", "ALL_PROXY"), value("no_proxy", "NO_PROXY")};
}

/// What may not appear in words about the proxy.
std::vector<std::string> secrets_of(const std::string& proxy) {
  const std::string user = url_parts(proxy).user;
  if (user.empty()) return {};
  std::vector<std::string> out{proxy, user};
  if (const auto colon = user.find(':'); colon != std::string::npos) {
    out.push_back(user.substr(colon + 1));
  }
  return out;
}

/// Did the proxy itself answer that it does not do this? Its status, else 0.
long refused_by_proxy(CURL* handle, const Exchange& exchange) {
  long status = 0;
  if (exchange.through_proxy) curl_easy_getinfo(handle, CURLINFO_HTTP_CONNECTCODE, &status);
  return status >= 400 && status < 500 && status != 408 && status != 429 ? status : 0;
}

HttpFailure failure_of(CURLcode code, CURL* handle, const Exchange& exchange) {
  if (exchange.blocked && code == CURLE_COULDNT_CONNECT) return HttpFailure::blocked;
  if (refused_by_proxy(handle, exchange) != 0) return HttpFailure::proxy;
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return HttpFailure::bad_request;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return HttpFailure::certificate;
    case CURLE_OPERATION_TIMEDOUT: {
      long sent = 0;
      curl_easy_getinfo(handle, CURLINFO_REQUEST_SIZE, &sent);
      return sent > 0 ? HttpFailure::no_answer : HttpFailure::unreachable;
    }
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2_STREAM:  // reset behind the request
      return HttpFailure::no_answer;
    case CURLE_RECV_ERROR:
      return exchange.response.headers.empty() ? HttpFailure::unreachable : HttpFailure::no_answer;
    default:
      return HttpFailure::unreachable;
  }
}

// A handle and its connections, kept between the calls of one thread.
struct Kept {
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle{nullptr, curl_easy_cleanup};
  std::uint64_t client = 0;
  AddressGuard guard;   // what the addresses behind its connections were checked with
  TlsFilesStamp files;  // what its connections were opened with

  // Nothing of another client, of another guard or of older certificates is used again.
  CURL* take(std::uint64_t of, const AddressGuard& checked_with, const TlsFilesStamp& opened_with) {
    if (handle && client == of && guard == checked_with && files == opened_with) {
      return handle.get();
    }
    handle.reset(curl_easy_init());
    client = of;
    guard = checked_with;
    files = opened_with;
    return handle.get();
  }
};

thread_local Kept kept_handles;

/// Of a connection that was made: see http_connector.h.
HttpResponse connection_of(CURL* handle) {
  HttpResponse out;
  const char* address = nullptr;
  curl_easy_getinfo(handle, CURLINFO_PRIMARY_IP, &address);
  if (address != nullptr) out.headers.emplace_back(kPeerAddress, address);
  curl_certinfo* chain = nullptr;
  curl_easy_getinfo(handle, CURLINFO_CERTINFO, &chain);
  if (chain == nullptr || chain->num_of_certs == 0) return out;
  constexpr std::string_view kExpire = "Expire date:";
  for (const curl_slist* line = chain->certinfo[0]; line != nullptr; line = line->next) {
    const std::string_view text = line->data;
    if (text.starts_with(kExpire)) {
      out.headers.emplace_back(kCertificateEnds, text.substr(kExpire.size()));
    }
  }
  return out;
}

class CurlHttpClient final : public HttpClient {
 public:
  enum class Depth { exchange, connection };
  explicit CurlHttpClient(Depth depth) : depth_(depth) {}

  HttpResult send(const HttpRequest& request) override {
    curl_global();
    HttpResult out;
    CURL* const handle = kept_handles.take(number_, request.guard, TlsFilesStamp(request.tls));
    if (handle == nullptr) return {HttpFailure::unreachable, "no memory for a request", {}};
    const ServerName target = server_name_of(request);
    Lines headers(nullptr, curl_slist_free_all);
    if (HttpResult problem = add_headers(request, target, headers);
        problem.failure != HttpFailure::none) {
      return problem;
    }
    Exchange exchange;
    exchange.request = &request;
    const std::string proxy = proxy_for(request.url, request.proxy, proxy_environment());
    exchange.through_proxy = !proxy.empty();
    if (exchange.through_proxy) {
      if (auto problem = proxied_host_problem(request.url, request.guard); !problem.empty()) {
        return {HttpFailure::blocked, std::move(problem), {}};
      }
    }
    curl_easy_setopt(handle, CURLOPT_PROXY, proxy.c_str());
    configure(handle, request, headers.get(), exchange);
    curl_easy_setopt(handle, CURLOPT_URL, target.url.c_str());
    curl_easy_setopt(handle, CURLOPT_CONNECT_TO, target.connect_to.get());
    if (depth_ == Depth::connection) {
      curl_easy_setopt(handle, CURLOPT_CONNECT_ONLY, 1L);
      curl_easy_setopt(handle, CURLOPT_CERTINFO, 1L);
    } else if (request.aws) {
      sign(handle, *request.aws);
    }
    std::array<char, CURL_ERROR_SIZE> words{};
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, words.data());
    const CURLcode code = curl_easy_perform(handle);
    // Everything the options point to lies on this stack; the next call sets its own.
    const std::unique_ptr<CURL, decltype(&curl_easy_reset)> reset(handle, curl_easy_reset);
    if (code == CURLE_OK && depth_ == Depth::connection) {
      out.response = connection_of(handle);
      kept_handles.client = 0;  // nobody's: closed before the next request of this thread
      return out;
    }
    if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && exchange.cut)) {
      long status = 0;
      curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
      exchange.response.status = static_cast<int>(status);
      out.response = std::move(exchange.response);
      return out;
    }
    out.failure = failure_of(code, handle, exchange);
    out.detail =
        redact(words[0] != '\0' ? words.data() : curl_easy_strerror(code), secrets_of(proxy));
    if (const long status = refused_by_proxy(handle, exchange); status != 0) {
      out.response.status = static_cast<int>(status);
    }
    if (out.failure == HttpFailure::blocked) {
      out.detail = "the host's address is not public; name its network in allow_private";
    }
    return out;
  }

 private:
  /// libcurl signs the method, the path, every header of ours and the body.
  static void sign(CURL* handle, const AwsSigning& aws) {
    const std::string scope = "aws:amz:" + aws.region + ":" + aws.service;
    curl_easy_setopt(handle, CURLOPT_AWS_SIGV4, scope.c_str());
    curl_easy_setopt(handle, CURLOPT_USERNAME, aws.access_key_id.c_str());
    curl_easy_setopt(handle, CURLOPT_PASSWORD, aws.secret_access_key.c_str());
  }

  static void configure(CURL* handle, const HttpRequest& request, curl_slist* headers,
                        Exchange& exchange) {
    curl_easy_setopt(
        handle, CURLOPT_HTTP_VERSION,
        static_cast<long>(request.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(handle, CURLOPT_MAXCONNECTS, 2L);
    curl_easy_setopt(handle, CURLOPT_MAXAGE_CONN, kMaxIdle);
    curl_easy_setopt(handle, CURLOPT_MAXLIFETIME_CONN, kMaxLife);
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(handle, CURLOPT_NOPROXY, "");  // proxy_for() has decided
    curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(handle, CURLOPT_PROXYAUTH, static_cast<long>(CURLAUTH_ANY));
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.c_str());
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(std::min(request.connect_timeout, request.timeout).count()));
    set_tls(handle, request.tls);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, &exchange);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &exchange);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, &exchange);
  }

  // Never given again, as an address may be.
  static inline std::atomic<std::uint64_t> clients{0};
  const std::uint64_t number_ = ++clients;
  const Depth depth_;
};

}  // namespace

void curl_global() {
  static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)once;
}

std::unique_ptr<HttpClient> curl_http_client() {
  return std::make_unique<CurlHttpClient>(CurlHttpClient::Depth::exchange);
}

std::unique_ptr<HttpClient> curl_http_connector() {
  return std::make_unique<CurlHttpClient>(CurlHttpClient::Depth::connection);
}

std::string url_problem(const std::string& url, const AddressGuard& guard) {
  curl_global();
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) {
    return "expected a URL such as https://example.com/hook";
  }
  const auto part = [&](CURLUPart which) {
    char* text = nullptr;
    std::string out;
    if (curl_url_get(parsed.get(), which, &text, 0) == CURLUE_OK) out = text;
    curl_free(text);
    return out;
  };
  const std::string scheme = part(CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return "expected http or https, found " + scheme;
  if (!part(CURLUPART_USER).empty() || !part(CURLUPART_PASSWORD).empty()) {
    return "a URL may not hold user or password; use bearer_token or a header";
  }
  if (const auto address = parse_address(part(CURLUPART_HOST));
      address && !guard.allows(*address)) {
    return "the address " + part(CURLUPART_HOST) +
           " is not public; name its network in allow_private, such as allow_private: "
           "[127.0.0.0/8]";
  }
  return {};
}

}  // namespace tocsin::actions
