//! HTTP requests to the hub: redirects, the access token and time limits.

use std::time::Duration;

use ureq::http::{Response, Uri, header};
use ureq::{Agent, Body};

use super::{Hub, HubError};

/// The public hub redirects once or twice.
const MAX_REDIRECTS: usize = 5;
/// The longest wait that the header `Retry-After` can demand.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

/// Sends requests to one hub.
pub(super) struct Client {
    agent: Agent,
    /// The address of the hub, without a slash at the end.
    pub(super) endpoint: String,
    /// The value of the header `Authorization`.
    authorization: Option<String>,
}

/// A request without a body.
#[derive(Clone, Copy)]
pub(super) enum Request {
    /// Asks for the headers of a file. The answer may be a redirect that has these headers.
    Headers,
    /// Asks for the content from this byte on.
    Content { start: u64 },
}

/// Explains why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("the server answers with status {status}")]
    Status { status: u16, retry_after: Option<Duration> },
    #[error("the server sends no data for {} s", .0.as_secs_f32())]
    Stalled(Duration),
    #[error("the connection ends after {found} of {expected} bytes")]
    Truncated { found: u64, expected: u64 },
    #[error("the server redirects to `{0}`, which is refused")]
    Redirect(String),
    #[error("the server sends more than {0} bytes")]
    TooLong(u64),
    #[error(transparent)]
    Http(ureq::Error),
}

impl RequestError {
    /// Returns true if the same request can succeed later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500 | 502 | 503 | 504),
            Self::Stalled(_) | Self::Truncated { .. } => true,
            Self::Redirect(_) | Self::TooLong(_) => false,
            Self::Http(error) => matches!(
                error,
                ureq::Error::Io(_)
                    | ureq::Error::Timeout(_)
                    | ureq::Error::HostNotFound
                    | ureq::Error::ConnectionFailed
                    | ureq::Error::Protocol(_)
            ),
        }
    }

    /// Returns the time that the server asks to wait.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let Self::Status { retry_after, .. } = self else { return None };
        retry_after.map(|wait| wait.min(MAX_RETRY_AFTER))
    }
}

impl Client {
    /// Creates a client. Fails if the token cannot be sent.
    pub(super) fn new(hub: &Hub, endpoint: &str) -> Result<Self, HubError> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Redirects are followed here, because the token must not be sent to another server.
            .max_redirects(0)
            // A compressed file would not have the size that the hub states.
            .accept_encoding("identity")
            .user_agent(concat!("melm/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(hub.timeout))
            .timeout_connect(Some(hub.timeout))
            .timeout_per_read(Some(hub.stall_timeout))
            .timeout_per_write(Some(hub.stall_timeout))
            .build();
        let token = hub.token.as_ref().map(|token| token.0.as_str());
        if token.is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(HubError::InvalidToken);
        }
        Ok(Self {
            agent: config.new_agent(),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            authorization: token.map(|token| format!("Bearer {token}")),
        })
    }

    /// Returns a small text, such as a description in JSON. It must arrive within `timeout`.
    pub(super) fn get_text(
        &self,
        url: &str,
        limit: u64,
        timeout: Duration,
    ) -> Result<String, RequestError> {
        let mut response = self.send(url, Request::Content { start: 0 }, Some(timeout))?;
        let body = response.body_mut().with_config().limit(limit);
        body.read_to_string().map_err(|error| match error {
            ureq::Error::BodyExceedsLimit(limit) => RequestError::TooLong(limit),
            other => RequestError::Http(other),
        })
    }

    /// Sends a request and follows redirects. Returns an answer with status 200 or 206, or, for [`Request::Headers`],
    /// a redirect that states the checksum of the file.
    pub(super) fn send(
        &self,
        url: &str,
        request: Request,
        timeout: Option<Duration>,
    ) -> Result<Response<Body>, RequestError> {
        let mut url = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send_once(&url, request, timeout)?;
            let is_described = response.headers().contains_key("x-linked-etag");
            match response.status().as_u16() {
                200 | 206 => return Ok(response),
                301 | 302 | 303 | 307 | 308 => {
                    if is_described && matches!(request, Request::Headers) {
                        return Ok(response);
                    }
                    url = redirect_target(&url, text_of(&response, "location").unwrap_or(""))?;
                }
                status => {
                    let seconds = text_of(&response, "retry-after").and_then(|s| s.parse().ok());
                    let retry_after = seconds.map(Duration::from_secs);
                    return Err(RequestError::Status { status, retry_after });
                }
            }
        }
        Err(RequestError::Redirect(url))
    }

    fn send_once(
        &self,
        url: &str,
        request: Request,
        timeout: Option<Duration>,
    ) -> Result<Response<Body>, RequestError> {
        let mut builder = match request {
            Request::Headers => self.agent.head(url),
            Request::Content { start: 0 } => self.agent.get(url),
            Request::Content { start } => {
                self.agent.get(url).header(header::RANGE, format!("bytes={start}-"))
            }
        };
        if let Some(authorization) = &self.authorization
            && is_same_server(url, &self.endpoint)
        {
            builder = builder.header(header::AUTHORIZATION, authorization);
        }
        let request = builder.config().timeout_global(timeout).build();
        request.call().map_err(RequestError::Http)
    }
}

/// Returns the value of a header, if it is text.
pub(super) fn text_of<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// Returns the address that a redirect names. Refuses to leave HTTPS.
fn redirect_target(from: &str, location: &str) -> Result<String, RequestError> {
    let refused = || RequestError::Redirect(location.to_owned());
    let target = if location.starts_with('/') && !location.starts_with("//") {
        let uri: Uri = from.parse().map_err(|_| refused())?;
        let (scheme, authority) = uri.scheme_str().zip(uri.authority()).ok_or_else(refused)?;
        format!("{scheme}://{authority}{location}")
    } else {
        location.to_owned()
    };
    let is_allowed = target.starts_with("https://")
        || (target.starts_with("http://") && from.starts_with("http://"));
    if is_allowed { Ok(target) } else { Err(refused()) }
}

/// Returns true if two addresses have the same scheme, host and port.
fn is_same_server(left: &str, right: &str) -> bool {
    let server = |url: &str| -> Option<(String, String, u16)> {
        let uri: Uri = url.parse().ok()?;
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        Some((scheme, uri.host()?.to_ascii_lowercase(), port))
    };
    server(left).is_some_and(|left| server(right) == Some(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_with_https() {
        let target = |from: &str, location: &str| redirect_target(from, location).ok();
        assert_eq!(target("https://a.test/x?y", "/z"), Some("https://a.test/z".to_owned()));
        assert_eq!(target("http://a.test:8/x", "/z"), Some("http://a.test:8/z".to_owned()));
        assert_eq!(target("https://a.test/x", "https://b.test/"), Some("https://b.test/".into()));
        for refused in ["http://a.test/z", "//b.test/z", "file:///etc/passwd", "z", ""] {
            assert_eq!(target("https://a.test/x", refused), None, "{refused}");
        }
    }

    #[test]
    fn the_token_is_only_for_the_server_of_the_endpoint() {
        let hub = "https://hub.test";
        for same in ["https://hub.test/a", "https://HUB.test:443/a"] {
            assert!(is_same_server(same, hub), "{same}");
        }
        let others = [
            "http://hub.test/a",
            "https://hub.test:444/a",
            "https://cdn.hub.test/a",
            "https://hub.test.evil/a",
            "https://hub.test@evil.test/a",
            "",
        ];
        for other in others {
            assert!(!is_same_server(other, hub), "{other}");
        }
    }
}
