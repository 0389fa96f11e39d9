package queue

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// maxKeysOfCmd bounds how long one MGET keeps the server to itself.
const maxKeysOfCmd = 256

// fetch reads everything that was asked for, in one round trip.
func (r *reader) fetch(ctx context.Context) error {
	if len(r.order) == 0 {
		return nil
	}
	take := r.askMany(ctx)
	if _, err := r.pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	return take()
}

// askMany queues the reads of values, many keys to a command where one server has them all. The function that it returns
// takes the answers.
func (r *reader) askMany(ctx context.Context) (take func() error) {
	if _, cluster := r.index.client.(*redis.ClusterClient); cluster {
		return r.askEach(ctx)
	}
	var cmds []*redis.SliceCmd
	for from := 0; from < len(r.order); from += maxKeysOfCmd {
		part := r.order[from:min(from+maxKeysOfCmd, len(r.order))]
		keys := make([]string, len(part))
		for i, get := range part {
			keys[i] = get.key
		}
		cmds = append(cmds, r.pipe.MGet(ctx, keys...))
	}
	return func() error {
		for n, cmd := range cmds {
			values, err := cmd.Result()
			if err != nil {
				return err
			}
			for i, value := range values {
				get := r.order[n*maxKeysOfCmd+i]
				get.value, get.found = value.(string)
			}
		}
		return nil
	}
}

// askEach does so key by key, since the keys of a Cluster are not in one slot.
func (r *reader) askEach(ctx context.Context) (take func() error) {
	cmds := make([]*redis.StringCmd, len(r.order))
	for i, get := range r.order {
		cmds[i] = r.pipe.Get(ctx, get.key)
	}
	return func() error {
		for i, cmd := range cmds {
			value, err := cmd.Result()
			switch {
			case err == nil:
				r.order[i].value, r.order[i].found = value, true
			case !errors.Is(err, redis.Nil):
				return err
			}
		}
		return nil
	}
}
