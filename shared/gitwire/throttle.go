package gitwire

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxThrottle caps what a server may ask for: an absurd Retry-After must not switch a host off for good.
const maxThrottle = time.Hour

// throttle reads whether an answer asks to be left alone, and until when (zero: it does not say).
func throttle(resp *http.Response, now time.Time) (bool, time.Time) {
	at := retryAt(resp.Header, now)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true, at
	case http.StatusForbidden:
		// GitHub's way to say it; a plain 403 is about permissions.
		if resp.Header.Get("X-Ratelimit-Remaining") == "0" || !at.IsZero() {
			return true, at
		}
	default:
		if resp.StatusCode >= 500 && !at.IsZero() {
			return true, at
		}
	}
	return false, time.Time{}
}

// retryAt reads Retry-After (seconds or a date), else the reset time of a used-up rate limit.
func retryAt(h http.Header, now time.Time) time.Time {
	var at time.Time
	value := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		at = now.Add(time.Duration(min(seconds, int64(maxThrottle/time.Second))) * time.Second)
	} else if date, err := http.ParseTime(value); err == nil {
		at = date
	} else if h.Get("X-Ratelimit-Remaining") == "0" {
		if unix, err := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64); err == nil {
			at = time.Unix(unix, 0)
		}
	}
	switch {
	case !at.After(now):
		return time.Time{} // in the past, or malformed: as if nothing had been said
	case at.After(now.Add(maxThrottle)):
		return now.Add(maxThrottle)
	}
	return at.UTC()
}
