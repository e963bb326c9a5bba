/* Members on librdkafka, as a program in C uses it. The words in and out are described in compat_tests/harness. */
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "json.h"

enum { BATCH = 200, WAIT_MS = 100 };

typedef struct {
    const char *name;
    pthread_t thread;
    atomic_int leaving;
} member;

static const json *orders;
static pthread_mutex_t speaking = PTHREAD_MUTEX_INITIALIZER;

/* One event; `what` is the rest of the object, after a comma. */
static void tell(const char *name, const char *event, const char *what) {
    struct timeval now;
    pthread_mutex_lock(&speaking);
    gettimeofday(&now, NULL);
    printf("{\"member\": \"%s\", \"event\": \"%s\", \"at\": %ld.%06ld%s}\n", name, event, (long)now.tv_sec,
           (long)now.tv_usec, what);
    fflush(stdout);
    pthread_mutex_unlock(&speaking);
}

static void trouble(const char *name, const char *text) {
    line what = {0};
    add(&what, ", \"text\": ");
    add_string(&what, text, strlen(text));
    tell(name, "trouble", what.text);
    free(what.text);
}

static void tell_share(const char *name, const char *event, const rd_kafka_topic_partition_list_t *places) {
    line what = {0};
    add(&what, ", \"partitions\": [");
    for (int n = 0; n < places->cnt; n++) add(&what, "%s%d", n ? ", " : "", (int)places->elems[n].partition);
    add(&what, "]");
    tell(name, event, what.text);
    free(what.text);
}

static void rebalanced(rd_kafka_t *by, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t *places, void *me) {
    const char *name = ((member *)me)->name;
    int cooperative = strcmp(rd_kafka_rebalance_protocol(by), "COOPERATIVE") == 0;
    rd_kafka_error_t *failed = NULL;
    if (error == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        tell_share(name, "assigned", places);
        failed = cooperative ? rd_kafka_incremental_assign(by, places) : (rd_kafka_assign(by, places), NULL);
    } else {
        tell_share(name, "revoked", places);
        failed = cooperative ? rd_kafka_incremental_unassign(by, places) : (rd_kafka_assign(by, NULL), NULL);
    }
    if (failed) {
        trouble(name, rd_kafka_error_string(failed));
        rd_kafka_error_destroy(failed);
    }
}

static void failed(rd_kafka_t *by, int error, const char *reason, void *me) {
    (void)error;
    char fatal[512];
    trouble(((member *)me)->name, reason);
    if (rd_kafka_fatal_error(by, fatal, sizeof fatal)) trouble(((member *)me)->name, fatal);
}

static void set(rd_kafka_conf_t *how, const char *name, const char *value) {
    char why[512];
    if (rd_kafka_conf_set(how, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) {
        fprintf(stderr, "%s\n", why);
        exit(1);
    }
}

static void set_number(rd_kafka_conf_t *how, const char *name, long long value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", value);
    set(how, name, text);
}

static rd_kafka_t *consumer(member *me) {
    rd_kafka_conf_t *how = rd_kafka_conf_new();
    char why[512];
    set(how, "bootstrap.servers", json_text(orders, "bootstrap"));
    set(how, "group.id", json_text(orders, "group"));
    set(how, "client.id", me->name);
    set(how, "enable.auto.commit", "false");
    set(how, "auto.offset.reset", "earliest");
    set(how, "fetch.wait.max.ms", "100");
    set(how, "reconnect.backoff.max.ms", "500");
    set_number(how, "session.timeout.ms", json_number(orders, "session_ms"));
    set_number(how, "heartbeat.interval.ms", json_number(orders, "heartbeat_ms"));
    if (json_text(orders, "assignor")) set(how, "partition.assignment.strategy", json_text(orders, "assignor"));
    if (json_true(orders, "static")) set(how, "group.instance.id", me->name);
    rd_kafka_conf_set_opaque(how, me);
    rd_kafka_conf_set_rebalance_cb(how, rebalanced);
    rd_kafka_conf_set_error_cb(how, failed);
    rd_kafka_t *made = rd_kafka_new(RD_KAFKA_CONSUMER, how, why, sizeof why);
    if (!made) {
        fprintf(stderr, "%s\n", why);
        exit(1);
    }
    rd_kafka_poll_set_consumer(made);
    return made;
}

/* The records of one partition among what was taken, told together; where to go on from. */
static int64_t tell_records(const char *name, rd_kafka_message_t **taken, ssize_t count, int32_t partition) {
    int64_t next = 0;
    line what = {0};
    add(&what, ", \"partition\": %d, \"records\": [", (int)partition);
    for (ssize_t n = 0; n < count; n++) {
        if (taken[n]->err || taken[n]->partition != partition) continue;
        add(&what, "%s[%lld, ", next ? ", " : "", (long long)taken[n]->offset);
        add_string(&what, taken[n]->payload, taken[n]->len);
        add(&what, "]");
        next = taken[n]->offset + 1;
    }
    add(&what, "]");
    tell(name, "records", what.text);
    free(what.text);
    return next;
}

static void commit(rd_kafka_t *by, const char *name, rd_kafka_topic_partition_list_t *places) {
    const char *note = json_text(orders, "metadata"), *comma = "";
    line what = {0};
    for (int n = 0; note && n < places->cnt; n++) {
        places->elems[n].metadata = strdup(note);
        places->elems[n].metadata_size = strlen(note);
    }
    rd_kafka_resp_err_t error = rd_kafka_commit(by, places, 0);
    if (error) {
        trouble(name, rd_kafka_err2str(error));
        return;
    }
    add(&what, ", \"positions\": {");
    for (int n = 0; n < places->cnt; n++) {
        const rd_kafka_topic_partition_t *place = &places->elems[n];
        if (place->err) continue;
        add(&what, "%s\"%d\": %lld", comma, (int)place->partition, (long long)place->offset);
        comma = ", ";
    }
    add(&what, "}");
    tell(name, "committed", what.text);
    free(what.text);
}

static void take(rd_kafka_t *by, rd_kafka_queue_t *from, const char *name) {
    rd_kafka_message_t *taken[BATCH];
    rd_kafka_topic_partition_list_t *places = rd_kafka_topic_partition_list_new(4);
    const char *topic = json_text(orders, "topic");
    ssize_t count = rd_kafka_consume_batch_queue(from, WAIT_MS, taken, BATCH);
    for (ssize_t n = 0; n < count; n++) {
        if (taken[n]->err)
            trouble(name, rd_kafka_message_errstr(taken[n]));
        else if (!rd_kafka_topic_partition_list_find(places, topic, taken[n]->partition))
            rd_kafka_topic_partition_list_add(places, topic, taken[n]->partition);
    }
    for (int n = 0; n < places->cnt; n++)
        places->elems[n].offset = tell_records(name, taken, count, places->elems[n].partition);
    for (ssize_t n = 0; n < count; n++) rd_kafka_message_destroy(taken[n]);
    if (places->cnt > 0) commit(by, name, places);
    rd_kafka_topic_partition_list_destroy(places);
}

static void *consume(void *opaque) {
    member *me = opaque;
    rd_kafka_t *by = consumer(me);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(by);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, json_text(orders, "topic"), RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(by, topics);
    while (!me->leaving) take(by, queue, me->name);
    rd_kafka_queue_destroy(queue);
    rd_kafka_consumer_close(by);
    rd_kafka_topic_partition_list_destroy(topics);
    rd_kafka_destroy(by);
    tell(me->name, "left", "");
    return NULL;
}

static void obey(const char *text, member *all, int count) {
    for (int n = 0; n < count; n++)
        if (strncmp(text, "leave ", 6) == 0 && strcmp(text + 6, all[n].name) == 0) all[n].leaving = 1;
}

int main(int count, char **arguments) {
    const json *each;
    char *text = NULL;
    size_t room = 0;
    int members = 0;
    orders = json_parse(count > 1 ? arguments[1] : "{}");
    for (each = json_get(orders, "members")->first; each; each = each->next) members++;
    member *all = calloc((size_t)members, sizeof *all);
    tell("", "ready", "");
    if (json_true(orders, "hold") && getline(&text, &room, stdin) < 0) return 0;
    each = json_get(orders, "members")->first;
    for (int n = 0; n < members; n++, each = each->next) {
        all[n].name = each->text;
        pthread_create(&all[n].thread, NULL, consume, &all[n]);
    }
    while (getline(&text, &room, stdin) > 0) {
        text[strcspn(text, "\n")] = 0;
        obey(text, all, members);
    }
    for (int n = 0; n < members; n++) all[n].leaving = 1;
    for (int n = 0; n < members; n++) pthread_join(all[n].thread, NULL);
    return 0;
}
