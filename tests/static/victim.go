// victim.go: confluent-kafka-go as its users build it, with librdkafka inside. One goroutine is blocked in KIND of
// poll, the main one closes the consumer. Needs no broker: librdkafka's own mock cluster.
//
//	victim poll | read
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

func check(err error) {
	if err != nil {
		fmt.Println("not ok:", err)
		os.Exit(1)
	}
}

func main() {
	kind := os.Args[1]
	_, version := kafka.LibraryVersion()
	fmt.Println("# librdkafka", version)
	c, err := kafka.NewConsumer(&kafka.ConfigMap{
		"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "group.id": "victim",
	})
	check(err)
	check(c.Subscribe("nothing", nil))
	c.Poll(100)
	inside, left := make(chan bool), make(chan bool)
	go func() {
		inside <- true
		switch kind {
		case "poll":
			for !c.IsClosed() {
				c.Poll(-1)
			}
		case "read":
			for {
				if _, err := c.ReadMessage(-1); err != nil {
					break
				}
			}
		}
		left <- true
	}()
	<-inside
	time.Sleep(300 * time.Millisecond)
	fmt.Println("# close")
	check(c.Close())
	fmt.Println("# leave")
	// ReadMessage has no way to tell its caller that the consumer is closed: it polls on, for ever. It must only
	// do no harm.
	select {
	case <-left:
	case <-time.After(2 * time.Second):
		if kind == "poll" {
			fmt.Println("not ok: the poll did not return")
			os.Exit(1)
		}
	}
	fmt.Println("ok closed")
}
