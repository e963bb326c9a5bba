package main

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// attach puts the text beside each position of a commit.
func attach(text string) func(*kmsg.OffsetCommitRequest) error {
	return func(request *kmsg.OffsetCommitRequest) error {
		for t := range request.Topics {
			for p := range request.Topics[t].Partitions {
				request.Topics[t].Partitions[p].Metadata = &text
			}
		}
		return nil
	}
}
