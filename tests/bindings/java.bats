# Java through JNA from Maven Central, on Debian's librdkafka and Apache Kafka: opened by path, symbols by dlsym, calls
# from libffi's like.

load ../clients
load ../broker
load ../bindings

# shellcheck disable=SC2034 # for broker.bash
TOPICS=(orders 3 600 quiet 1 0)

setup() {
    broker_or_skip
    binding_or_skip java
    LIB=$(ldconfig -p | awk '$1 == "librdkafka.so.1" { print $NF; exit }')
}

java_() { # NAME SECONDS SCENARIO TOPIC
    both "$1" "$2" java -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$PARTS:$PARTS/jars/*" Service "$3" \
        "$BOOTSTRAP" GROUP "$4" 600 "$LIB"
}

@test "Java: a thread polls, another commits, a callback into the virtual machine" {
    java_ java 40 serve orders
    serves java 603
    said java gated "committed: 2 200"
    covered java 'librdkafka\.so'
    row java "JNA (Java)" "$(cd "$PARTS/jars" && echo jna-*.jar | sed 's/jna-\(.*\)\.jar/\1/') from Maven Central"
}

@test "Java: close against a poll without limit hangs without, ends with" {
    java_ javaclose 12 close quiet
    fell javaclose plain
    ended javaclose gated 0
    said javaclose gated "the poll returned null"
    said javaclose gated closed
    was_gated javaclose
}
