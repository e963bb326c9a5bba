// Package lines is what the Go members share: orders in, events out. The words are described in
// compat_tests/harness/__init__.py.
package lines

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"sort"
	"strings"
	"sync"
	"time"
)

// Orders is the program's argument.
type Orders struct {
	Bootstrap   string   `json:"bootstrap"`
	Group       string   `json:"group"`
	Topic       string   `json:"topic"`
	Members     []string `json:"members"`
	SessionMs   int      `json:"session_ms"`
	HeartbeatMs int      `json:"heartbeat_ms"`
	Protocol    string   `json:"protocol"`
	Assignor    string   `json:"assignor"`
	Metadata    string   `json:"metadata"`
	Static      bool     `json:"static"`
	Hold        bool     `json:"hold"`
}

// Session and Heartbeat are the classic protocol's timeouts.
func (o Orders) Session() time.Duration   { return time.Duration(o.SessionMs) * time.Millisecond }
func (o Orders) Heartbeat() time.Duration { return time.Duration(o.HeartbeatMs) * time.Millisecond }

// Record is one record as the application sees it: its offset and its value.
type Record struct {
	Offset int64
	Value  string
}

// MarshalJSON writes a pair, to keep lines short.
func (r Record) MarshalJSON() ([]byte, error) { return json.Marshal([]any{r.Offset, r.Value}) }

var out sync.Mutex

// Tell writes one event; lines of different goroutines do not mix.
func Tell(member, event string, what map[string]any) {
	if what == nil {
		what = map[string]any{}
	}
	out.Lock()
	defer out.Unlock()
	what["member"], what["event"] = member, event
	what["at"] = float64(time.Now().UnixMicro()) / 1e6
	line, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(line, '\n'))
}

// Assigned says that the member was given the partitions; Revoked that it lets them go.
func Assigned(member string, partitions []int32) { owned(member, "assigned", partitions) }
func Revoked(member string, partitions []int32)  { owned(member, "revoked", partitions) }

func owned(member, event string, partitions []int32) {
	sorted := append([]int32{}, partitions...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i] < sorted[j] })
	Tell(member, event, map[string]any{"partitions": sorted})
}

// Records says what the application was given.
func Records(member string, partition int32, records []Record) {
	Tell(member, "records", map[string]any{"partition": partition, "records": records})
}

// Committed says which positions the broker acknowledged.
func Committed(member string, positions map[int32]int64) {
	Tell(member, "committed", map[string]any{"positions": positions})
}

// Trouble passes on what the library complained of.
func Trouble(member string, err error) {
	Tell(member, "trouble", map[string]any{"text": err.Error()})
}

// Run starts every member, ends each context when its member shall leave, and returns when all have left.
func Run(consume func(ctx context.Context, orders Orders, name string)) {
	var orders Orders
	if err := json.Unmarshal([]byte(os.Args[1]), &orders); err != nil {
		panic(err)
	}
	in := bufio.NewScanner(os.Stdin)
	Tell("", "ready", nil)
	if orders.Hold {
		in.Scan()
	}
	var all sync.WaitGroup
	leave := map[string]context.CancelFunc{}
	for _, name := range orders.Members {
		ctx, cancel := context.WithCancel(context.Background())
		leave[name] = cancel
		all.Add(1)
		go func() {
			defer all.Done()
			consume(ctx, orders, name)
			Tell(name, "left", nil)
		}()
	}
	for in.Scan() {
		if name, found := strings.CutPrefix(in.Text(), "leave "); found {
			leave[name]()
		}
	}
	for _, cancel := range leave {
		cancel()
	}
	all.Wait()
}
