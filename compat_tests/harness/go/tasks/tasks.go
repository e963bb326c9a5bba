// Package tasks is what the Go programs of compat_tests/features share: lines in, lines out. The words are described
// in compat_tests/features/__init__.py.
package tasks

import (
	"bufio"
	"encoding/json"
	"os"
)

// Seconds is how long anything may take.
const Seconds = 60

// Task is one line in; a word uses the fields it needs.
type Task struct {
	Do         string            `json:"do"`
	Topic      string            `json:"topic"`
	Group      string            `json:"group"`
	Note       string            `json:"note"`
	Acks       string            `json:"acks"`
	Codec      string            `json:"codec"`
	Idempotent bool              `json:"idempotent"`
	Count      int               `json:"count"`
	Partition  int32             `json:"partition"`
	Partitions []int32           `json:"partitions"`
	Offset     int64             `json:"offset"`
	Timestamp  int64             `json:"timestamp"`
	Configs    map[string]string `json:"configs"`
	Records    []Record          `json:"records"`
}

// Record goes both ways; nil bytes are null.
type Record struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []Header `json:"headers"`
}

// Header is written as a pair.
type Header struct {
	Name  string
	Value []byte
}

// MarshalJSON writes the pair.
func (h Header) MarshalJSON() ([]byte, error) { return json.Marshal([]any{h.Name, h.Value}) }

// UnmarshalJSON reads the pair.
func (h *Header) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&h.Name, &h.Value})
}

// Answer is what a word answers with.
type Answer map[string]any

// Serve reads tasks until the input ends; each word has its function.
func Serve(words map[string]func(Task) (Answer, error)) {
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var task Task
		if err := json.Unmarshal(line, &task); err != nil {
			panic(err)
		}
		answer, err := words[task.Do](task)
		switch {
		case err != nil:
			out.Encode(Answer{"error": err.Error()})
		case answer == nil:
			out.Encode(Answer{"ok": Answer{}})
		default:
			out.Encode(Answer{"ok": answer})
		}
	}
}
