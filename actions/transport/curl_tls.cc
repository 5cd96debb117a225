#include "actions/transport/curl_tls.h"

#include <sys/stat.h>

namespace tocsin::actions {
namespace {

std::int64_t nanoseconds_of(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::string url_part(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return {};
  std::string out = text;
  curl_free(text);
  return out;
}

}  // namespace

TlsFilesStamp::TlsFilesStamp(const HttpTls& tls)
    : files_{stamp_of(tls.ca_file), stamp_of(tls.cert_file), stamp_of(tls.key_file)} {}

TlsFilesStamp::FileStamp TlsFilesStamp::stamp_of(const std::string& path) {
  struct stat found {};
  if (path.empty() || stat(path.c_str(), &found) != 0) return {};
  return {found.st_ino, nanoseconds_of(found.st_mtim), nanoseconds_of(found.st_ctim),
          found.st_size};
}

ServerName server_name_of(const HttpRequest& request) {
  ServerName out;
  out.url = request.url;
  if (request.tls.server_name.empty()) return out;
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), curl_url_cleanup);
  if (!url || curl_url_set(url.get(), CURLUPART_URL, request.url.c_str(), 0) != CURLUE_OK ||
      url_part(url.get(), CURLUPART_SCHEME) != "https") {
    return out;
  }
  const std::string host = url_part(url.get(), CURLUPART_HOST);
  const std::string port = url_part(url.get(), CURLUPART_PORT);
  if (curl_url_set(url.get(), CURLUPART_HOST, request.tls.server_name.c_str(), 0) != CURLUE_OK) {
    return out;  // no name of a host: the certificate of the URL's own is asked for
  }
  out.url = url_part(url.get(), CURLUPART_URL);
  out.host_header = "Host: " + host + (port.empty() ? "" : ":" + port);
  out.connect_to.reset(curl_slist_append(nullptr, ("::" + host + ":" + port).c_str()));
  return out;
}

void set_tls(CURL* handle, const HttpTls& tls) {
  curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(handle, CURLOPT_SSLVERSION,
                   static_cast<long>(tls.min_version == "1.3" ? CURL_SSLVERSION_TLSv1_3
                                                              : CURL_SSLVERSION_TLSv1_2));
  if (!tls.ca_file.empty()) {
    curl_easy_setopt(handle, CURLOPT_CAINFO, tls.ca_file.c_str());
    curl_easy_setopt(handle, CURLOPT_PROXY_CAINFO, tls.ca_file.c_str());
  }
  if (!tls.cert_file.empty()) {
    curl_easy_setopt(handle, CURLOPT_SSLCERT, tls.cert_file.c_str());
    curl_easy_setopt(handle, CURLOPT_SSLKEY, tls.key_file.c_str());
  }
}

}  // namespace tocsin::actions
