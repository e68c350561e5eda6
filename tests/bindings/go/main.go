// A service on confluent-kafka-go v2, linked dynamically: service SCENARIO BOOTSTRAP GROUP TOPIC N
//
//	serve  one goroutine reads, another commits (which waits on a queue of its own), a third reads the logs channel;
//	       goroutines move between threads. SIGTERM, which comes after N messages, ends it. Prints each message and
//	       what has been committed.
//	close  the misuse: Close while three goroutines sit in Poll(-1). ReadMessage(-1) could not be helped: it polls
//	       again whenever a poll comes back empty, closed or not.
//	churn  the misuse: N consumers, each polled by one goroutine and closed by another
package main

// #include <stdlib.h>
import "C"

import (
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

var bootstrap, group, topic = os.Args[2], os.Args[3], os.Args[4]

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// No exit by return: Go leaves without the exit handlers of its libraries, and so without the shim's last line.
func leave() {
	C.exit(0)
}

func consumer(assigned chan bool) *kafka.Consumer {
	c, err := kafka.NewConsumer(&kafka.ConfigMap{
		"bootstrap.servers":             bootstrap,
		"group.id":                      group,
		"auto.offset.reset":             "earliest",
		"enable.auto.commit":            false,
		"partition.assignment.strategy": "cooperative-sticky",
		"go.logs.channel.enable":        true,
		"debug":                         "cgrp",
	})
	must(err)
	go func() {
		for range c.Logs() {
		}
	}()
	must(c.SubscribeTopics([]string{topic}, func(c *kafka.Consumer, event kafka.Event) error {
		switch e := event.(type) {
		case kafka.AssignedPartitions:
			must(c.IncrementalAssign(e.Partitions))
			assigned <- true
		case kafka.RevokedPartitions:
			must(c.IncrementalUnassign(e.Partitions))
		}
		return nil
	}))
	return c
}

func noOffset(err error) bool {
	e, ok := err.(kafka.Error)
	return ok && e.Code() == kafka.ErrNoOffset
}

func serve(wanted int) {
	c := consumer(make(chan bool, 100))
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	stop := make(chan bool)
	go func() {
		<-term
		close(stop)
	}()
	var wg sync.WaitGroup
	wg.Add(2)
	var lines []string
	go func() {
		defer wg.Done()
		for {
			select {
			case <-stop:
				return
			default:
			}
			m, err := c.ReadMessage(200 * time.Millisecond)
			if err != nil {
				continue
			}
			lines = append(lines, fmt.Sprintf("%s %d %d %s", *m.TopicPartition.Topic, m.TopicPartition.Partition,
				m.TopicPartition.Offset, m.Value))
			if len(lines) == wanted {
				syscall.Kill(syscall.Getpid(), syscall.SIGTERM)
			}
		}
	}()
	go func() {
		defer wg.Done()
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				if _, err := c.Commit(); err != nil && !noOffset(err) {
					must(err)
				}
			}
		}
	}()
	wg.Wait()
	if _, err := c.Commit(); err != nil && !noOffset(err) {
		must(err)
	}
	mine, err := c.Assignment()
	must(err)
	done, err := c.Committed(mine, 10000)
	must(err)
	sort.Slice(done, func(i, j int) bool { return done[i].Partition < done[j].Partition })
	must(c.Close())
	for _, line := range lines {
		fmt.Println(line)
	}
	for _, p := range done {
		fmt.Println("committed:", p.Partition, p.Offset)
	}
}

func closing() {
	assigned := make(chan bool, 100)
	c := consumer(assigned)
	var closed int32
	ended := make(chan bool)
	var pollers sync.WaitGroup
	for i := 0; i < 3; i++ {
		pollers.Add(1)
		go func() {
			defer pollers.Done()
			for atomic.LoadInt32(&closed) == 0 {
				c.Poll(-1)
			}
		}()
	}
	go func() {
		pollers.Wait()
		close(ended)
	}()
	<-assigned
	time.Sleep(300 * time.Millisecond)
	atomic.StoreInt32(&closed, 1)
	must(c.Close())
	fmt.Println("Close returned")
	<-ended
	fmt.Println("polls ended")
}

func churn(wanted int) {
	for i := 0; i < wanted; i++ {
		c := consumer(make(chan bool, 100))
		var closed int32
		ended := make(chan bool)
		go func() {
			for atomic.LoadInt32(&closed) == 0 {
				c.Poll(50)
			}
			close(ended)
		}()
		time.Sleep(time.Duration(20+3*(i%17)) * time.Millisecond)
		must(c.Close())
		// Polls go on for a while after the Close: nobody has told them.
		time.Sleep(20 * time.Millisecond)
		atomic.StoreInt32(&closed, 1)
		<-ended
	}
	fmt.Println("churned", wanted)
}

func main() {
	_, version := kafka.LibraryVersion()
	fmt.Fprintln(os.Stderr, "librdkafka", version)
	wanted, _ := strconv.Atoi(os.Args[5])
	switch os.Args[1] {
	case "serve":
		serve(wanted)
	case "close":
		closing()
	case "churn":
		churn(wanted)
	}
	leave()
}
