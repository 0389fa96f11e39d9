package valkeytest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidemark-dev/tidemark/shared/loopback"
)

const (
	clusterNodes = 3
	clusterSlots = 16384
)

// startCluster starts three nodes, gives each a third of the slots and waits until they agree.
func startCluster() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var addrs []string
	var clients []*redis.Client
	var busPorts []int
	for i := range clusterNodes {
		bus, err := loopback.Port()
		if err != nil {
			return "", err
		}
		addr, _, err := start("--cluster-enabled", "yes", "--cluster-config-file", fmt.Sprintf("node-%d.conf", i),
			"--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "5000")
		if err != nil {
			return "", err
		}
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		addrs, clients, busPorts = append(addrs, addr), append(clients, client), append(busPorts, bus)
		first, last := i*clusterSlots/clusterNodes, (i+1)*clusterSlots/clusterNodes-1
		if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return "", fmt.Errorf("set epoch of node %d: %w", i, err)
		}
		if err := client.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", first, last).Err(); err != nil {
			return "", fmt.Errorf("give slots to node %d: %w", i, err)
		}
	}
	for i := 1; i < clusterNodes; i++ {
		host, port, err := net.SplitHostPort(addrs[0])
		if err != nil {
			return "", err
		}
		if err := clients[i].Do(ctx, "CLUSTER", "MEET", host, port, busPorts[0]).Err(); err != nil {
			return "", fmt.Errorf("join node %d: %w", i, err)
		}
	}
	for _, client := range clients {
		for {
			info, err := client.ClusterInfo(ctx).Result()
			if err != nil {
				return "", fmt.Errorf("cluster did not form: %w", err)
			}
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", clusterNodes)) {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return strings.Join(addrs, ","), nil
}
