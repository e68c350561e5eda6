// Debian's confluent-kafka-go, linked dynamically: goclient SCENARIO BOOTSTRAP GROUP TOPIC MESSAGES
//
//	consume  one goroutine polls, another commits
//	close    Close while another goroutine sits in Poll(-1)
package main

// #include <stdlib.h>
import "C"

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/confluentinc/confluent-kafka-go/kafka"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	scenario, bootstrap, group, topic := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	wanted, _ := strconv.Atoi(os.Args[5])
	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{
		"bootstrap.servers":  bootstrap,
		"group.id":           group,
		"enable.auto.commit": false,
		"default.topic.config": kafka.ConfigMap{
			"auto.offset.reset": "earliest",
		},
	})
	if err != nil {
		fail(err)
	}
	assigned := make(chan bool, 100)
	consumer.Subscribe(topic, func(c *kafka.Consumer, event kafka.Event) error {
		switch e := event.(type) {
		case kafka.AssignedPartitions:
			c.Assign(e.Partitions)
			assigned <- true
		case kafka.RevokedPartitions:
			c.Unassign()
		}
		return nil
	})

	done := make(chan bool)
	var closing int32
	var seen []string
	go func() {
		defer close(done)
		for scenario == "close" && atomic.LoadInt32(&closing) == 0 {
			if event := consumer.Poll(-1); event == nil {
				fmt.Println("Poll(-1) returned nil, closing:", atomic.LoadInt32(&closing) == 1)
			}
		}
		for len(seen) < wanted {
			switch e := consumer.Poll(100).(type) {
			case *kafka.Message:
				seen = append(seen, fmt.Sprintf("%s %d %d %s", *e.TopicPartition.Topic, e.TopicPartition.Partition,
					e.TopicPartition.Offset, e.Value))
			case kafka.Error:
				fmt.Println("error", e)
			}
		}
	}()
	<-assigned
	if scenario == "close" {
		time.Sleep(300 * time.Millisecond)
		atomic.StoreInt32(&closing, 1)
	} else {
		commits := 0
		for polling := true; polling || commits == 0; {
			if _, err := consumer.Commit(); err == nil {
				commits++
			} else if err.(kafka.Error).Code() != kafka.ErrNoOffset {
				fail(err)
			}
			select {
			case <-done:
				polling = false
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	if err := consumer.Close(); err != nil {
		fail(err)
	}
	<-done
	sort.Strings(seen)
	for _, line := range seen {
		fmt.Println(line)
	}
	fmt.Println("closed")
	C.exit(0) // Go leaves without running the exit handlers of its libraries, and so without our exit line
}
