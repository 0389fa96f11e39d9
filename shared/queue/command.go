package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/types"
)

// CommandAuthorTTL is how long the author of a command object is kept.
const CommandAuthorTTL = time.Hour

// CommandAuthor is who created a command object, as its admission review said.
type CommandAuthor struct {
	Author      string `json:"author"`
	DisplayName string `json:"displayName,omitempty"`
	Email       string `json:"email,omitempty"`
	RequestedAt string `json:"requestedAt,omitempty"` // RFC 3339, by the recorder's clock
}

// CommandAuthorStore keeps the authors of command objects, by uid.
type CommandAuthorStore struct {
	client redis.UniversalClient
	prefix string
}

// CommandAuthorStore returns the store of command authors.
func (s *RedisStore) CommandAuthorStore() *CommandAuthorStore {
	return &CommandAuthorStore{client: s.client, prefix: s.prefix}
}

// RecordCommandAuthor keeps the first author of a command object. A later one, the same or another,
// changes nothing and is no error; nor is a record without a uid or an author, which is not kept.
func (c *CommandAuthorStore) RecordCommandAuthor(ctx context.Context, uid types.UID, author CommandAuthor) error {
	if uid == "" || author.Author == "" {
		return nil
	}
	value, err := json.Marshal(author)
	if err != nil {
		return fmt.Errorf("encode command author: %w", err)
	}
	if err := c.client.SetNX(ctx, commandAuthorKey(c.prefix, string(uid)), value, CommandAuthorTTL).Err(); err != nil {
		return fmt.Errorf("record command author: %w", err)
	}
	return nil
}

// LookupCommandAuthor returns the author of a command object, or false when there is none or when the
// store cannot say; FindCommandAuthor tells these two apart.
func (c *CommandAuthorStore) LookupCommandAuthor(ctx context.Context, uid types.UID) (CommandAuthor, bool) {
	author, err := c.FindCommandAuthor(ctx, uid)
	return author, err == nil && author.Author != ""
}

// FindCommandAuthor returns the author of a command object, or the zero CommandAuthor when there is none.
func (c *CommandAuthorStore) FindCommandAuthor(ctx context.Context, uid types.UID) (CommandAuthor, error) {
	value, err := c.client.Get(ctx, commandAuthorKey(c.prefix, string(uid))).Result()
	if errors.Is(err, redis.Nil) {
		return CommandAuthor{}, nil
	}
	if err != nil {
		return CommandAuthor{}, fmt.Errorf("look up command author: %w", err)
	}
	var author CommandAuthor
	if json.Unmarshal([]byte(value), &author) != nil || author.Author == "" {
		return CommandAuthor{}, nil
	}
	return author, nil
}
