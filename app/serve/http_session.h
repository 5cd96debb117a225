// One connection of the HTTP server, in clear or over TLS. Internal to serve.
#pragma once

#include <utility>  // boost 1.74's asio/awaitable.hpp needs it first

#include <boost/asio/ip/tcp.hpp>

#include <memory>

#include "app/serve/http_answers.h"
#include "app/serve/http_connections.h"

namespace boost::asio::ssl {
class context;
}

namespace tocsin::app {

/// Reads requests and answers them until the connection ends. `tls`: null in clear. `answers` and
/// `connections` outlive the io context of the socket.
void serve_connection(boost::asio::ip::tcp::socket socket,
                      std::shared_ptr<boost::asio::ssl::context> tls, HttpAnswers& answers,
                      HttpConnections& connections);

}  // namespace tocsin::app
