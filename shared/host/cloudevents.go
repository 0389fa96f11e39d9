package host

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// maxStructuredEvent bounds a CloudEvent that has to be read before the function sees it.
const maxStructuredEvent = 1 << 20

// structured is the media type of a CloudEvent that holds its attributes in its body.
const structured = "application/cloudevents+json"

// BinaryMode turns a request that holds a structured CloudEvent into the same event in binary mode, attributes as Ce-
// headers and data as the body, so that functions know one mode only. Other requests stay as they are. The error is for
// the caller: the body is no CloudEvent.
func BinaryMode(r *http.Request) error {
	contentType := r.Header.Get("Content-Type")
	if len(contentType) < len(structured) {
		return nil
	}
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != structured {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxStructuredEvent+1))
	if err != nil {
		return fmt.Errorf("read the CloudEvent: %w", err)
	}
	if len(body) > maxStructuredEvent {
		return fmt.Errorf("the CloudEvent has more than %d bytes", maxStructuredEvent)
	}
	var event map[string]json.RawMessage
	if err := json.Unmarshal(body, &event); err != nil || event["specversion"] == nil {
		return errors.New("the body is no structured CloudEvent")
	}
	data, err := eventData(event)
	if err != nil {
		return err
	}
	r.Header.Del("Content-Type")
	for name, value := range event {
		switch name {
		case "data", "data_base64":
		case "datacontenttype":
			r.Header.Set("Content-Type", attribute(value))
		default:
			r.Header.Set("Ce-"+name, attribute(value))
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	r.Header.Del("Content-Length")
	return nil
}

// eventData is the data of a structured event as the body of a binary one.
func eventData(event map[string]json.RawMessage) ([]byte, error) {
	if packed, ok := event["data_base64"]; ok {
		data, err := base64.StdEncoding.DecodeString(attribute(packed))
		if err != nil {
			return nil, errors.New("data_base64 of the CloudEvent is no base64")
		}
		return data, nil
	}
	return event["data"], nil
}

// attribute is the text of an attribute, fit for a header.
func attribute(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) != nil {
		s = string(value) // a number or a boolean
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}

// Serve hands a request to the function, after BinaryMode.
func Serve(handler http.Handler, w http.ResponseWriter, r *http.Request) {
	if err := BinaryMode(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	handler.ServeHTTP(w, r)
}
