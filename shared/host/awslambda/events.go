package awslambda

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// maxLogsBytes bounds the unpacked data of one CloudWatch Logs batch, which is about 1 MB packed.
const maxLogsBytes = 64 << 20

// queueMessage is the type of the CloudEvent that a record of SQS becomes when it holds none.
const queueMessage = "com.amazonaws.sqs.message"

// serveQueue posts every record of an SQS batch and names those that a retry can mend.
func (a *Adapter) serveQueue(ctx context.Context, raw []byte) ([]byte, error) {
	var batch struct {
		Records []struct {
			MessageID string `json:"messageId"`
			Body      string `json:"body"`
			Queue     string `json:"eventSourceARN"`
		} `json:"Records"`
	}
	if err := json.Unmarshal(raw, &batch); err != nil {
		return nil, fmt.Errorf("read the SQS batch: %w", err)
	}
	type failure struct {
		ItemIdentifier string `json:"itemIdentifier"`
	}
	out := struct {
		BatchItemFailures []failure `json:"batchItemFailures"`
	}{BatchItemFailures: []failure{}} // null would mean that the whole batch failed
	for _, record := range batch.Records {
		body, header := []byte(record.Body), map[string]string(nil)
		if contentType(body) != cloudEvent { // a message is an event and no tick, so that a function does not take its time
			header = map[string]string{"Ce-Specversion": "1.0", "Ce-Type": queueMessage, "Ce-Id": record.MessageID, "Ce-Source": record.Queue}
		}
		answer := a.postWith(ctx, a.cfg.EventPath, body, header)
		switch {
		case answer.retryable():
			a.log.Warn("queue record failed, will come again", "message", record.MessageID, "status", answer.status)
			out.BatchItemFailures = append(out.BatchItemFailures, failure{record.MessageID})
		case answer.status >= 400:
			a.log.Error("queue record refused, not retried", "message", record.MessageID, "status", answer.status, "answer", answer.excerpt())
		}
	}
	return json.Marshal(out)
}

// logsBatch is what a CloudWatch Logs subscription sends, unpacked.
type logsBatch struct {
	MessageType string `json:"messageType"`
	LogGroup    string `json:"logGroup"`
	LogEvents   []struct {
		Message string `json:"message"`
	} `json:"logEvents"`
}

// serveLogs posts the audit events of a CloudWatch Logs batch as the EventList that an API server would post.
func (a *Adapter) serveLogs(ctx context.Context, data string) ([]byte, error) {
	batch, err := unpackLogs(data)
	if err != nil {
		// The same bytes come again on a retry.
		a.log.Error("logs batch refused, not retried", "error", err)
		return []byte("null"), nil
	}
	if batch.MessageType != "DATA_MESSAGE" { // CONTROL_MESSAGE: is anyone there?
		return []byte("null"), nil
	}
	return a.result(a.post(ctx, a.logsPath(batch.LogGroup), batch.eventList()))
}

func unpackLogs(data string) (*logsBatch, error) {
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	if err != nil {
		return nil, fmt.Errorf("unpack the logs batch: %w", err)
	}
	limited := &io.LimitedReader{R: packed, N: maxLogsBytes + 1}
	var batch logsBatch
	if err := json.NewDecoder(limited).Decode(&batch); err != nil {
		if limited.N == 0 {
			return nil, fmt.Errorf("the logs batch is larger than %d bytes", maxLogsBytes)
		}
		return nil, fmt.Errorf("read the logs batch: %w", err)
	}
	return &batch, nil
}

// eventList puts the messages into one audit.k8s.io/v1 EventList. CloudWatch Logs cuts long messages: what is no JSON
// becomes null, which the function counts as malformed, so that it costs itself only.
func (b *logsBatch) eventList() []byte {
	var list bytes.Buffer
	list.WriteString(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`)
	for i, e := range b.LogEvents {
		if i > 0 {
			list.WriteByte(',')
		}
		if message := []byte(e.Message); json.Valid(message) {
			list.Write(message)
		} else {
			list.WriteString("null")
		}
	}
	list.WriteString("]}")
	return list.Bytes()
}

// logsPath is where a batch of the log group goes; EKS names its groups /aws/eks/CLUSTER/cluster.
func (a *Adapter) logsPath(logGroup string) string {
	cluster := "default"
	if rest, ok := strings.CutPrefix(logGroup, "/aws/eks/"); ok {
		cluster, _, _ = strings.Cut(rest, "/")
	}
	return strings.ReplaceAll(a.cfg.LogsPath, "{cluster}", cluster)
}
