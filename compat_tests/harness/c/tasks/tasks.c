/* The scenarios' words on librdkafka, as a program in C uses it; they are described in compat_tests/features. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "admin.h"
#include "json.h"
#include "tasks.h"

enum { PRODUCERS = 32, SECONDS = 60 };

static const char *bootstrap;

/* Where the answer to one record goes. */
typedef struct {
    int64_t offset;
    rd_kafka_resp_err_t error;
} delivery;

static rd_kafka_conf_t *conf(const char *const settings[]) {
    rd_kafka_conf_t *made = rd_kafka_conf_new();
    char why[512];
    rd_kafka_conf_set(made, "bootstrap.servers", bootstrap, why, sizeof why);
    for (; *settings; settings += 2) {
        if (rd_kafka_conf_set(made, settings[0], settings[1], why, sizeof why) != RD_KAFKA_CONF_OK) {
            fprintf(stderr, "%s\n", why);
            exit(1);
        }
    }
    return made;
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *how) {
    char why[512];
    rd_kafka_t *made = rd_kafka_new(type, how, why, sizeof why);
    if (!made) {
        fprintf(stderr, "%s\n", why);
        exit(1);
    }
    if (type == RD_KAFKA_CONSUMER) rd_kafka_poll_set_consumer(made);
    return made;
}

static rd_kafka_t *consumer(const char *group) {
    const char *const settings[] = {"group.id", group, "enable.auto.commit", "false", "auto.offset.reset", "error",
                                    "fetch.wait.max.ms", "100", NULL};
    return client(RD_KAFKA_CONSUMER, conf(settings));
}

static void delivered(rd_kafka_t *by, const rd_kafka_message_t *message, void *opaque) {
    (void)by;
    (void)opaque;
    delivery *answer = message->_private;
    answer->offset = message->offset;
    answer->error = message->err;
}

/* The producer for this way of producing; it lives as long as the program. */
static rd_kafka_t *producer(const char *acks, const char *codec, const char *idempotent) {
    static struct {
        char key[64];
        rd_kafka_t *made;
    } all[PRODUCERS];
    char key[64];
    int n = 0;
    snprintf(key, sizeof key, "%s %s %s", acks, codec, idempotent);
    while (n < PRODUCERS - 1 && all[n].made && strcmp(all[n].key, key) != 0) n++;
    if (!all[n].made) {
        const char *const settings[] = {"acks", acks, "compression.type", codec, "enable.idempotence", idempotent,
                                        "linger.ms", "20", "reconnect.backoff.max.ms", "500", NULL};
        rd_kafka_conf_t *how = conf(settings);
        rd_kafka_conf_set_dr_msg_cb(how, delivered);
        all[n].made = client(RD_KAFKA_PRODUCER, how);
        strcpy(all[n].key, key);
    }
    return all[n].made;
}

static rd_kafka_headers_t *headers_of(const json *record) {
    const json *each = json_get(record, "headers")->first;
    rd_kafka_headers_t *headers = rd_kafka_headers_new(4);
    for (; each; each = each->next) {
        size_t length;
        unsigned char *value = bytes_of(each->first->next->text, &length);
        rd_kafka_header_add(headers, each->first->text, -1, value, (ssize_t)length);
        free(value);
    }
    return headers;
}

static rd_kafka_resp_err_t send_one(rd_kafka_t *by, const char *topic, const json *record, delivery *answer) {
    size_t key_length, value_length;
    unsigned char *key = bytes_of(json_text(record, "key"), &key_length);
    unsigned char *value = bytes_of(json_text(record, "value"), &value_length);
    rd_kafka_headers_t *headers = headers_of(record);
    rd_kafka_resp_err_t error = rd_kafka_producev(
        by, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION((int32_t)json_number(record, "partition")),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_length),
        RD_KAFKA_V_VALUE(value, value_length), RD_KAFKA_V_TIMESTAMP(json_number(record, "timestamp")),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(answer), RD_KAFKA_V_END);
    if (error) rd_kafka_headers_destroy(headers);
    free(key);
    free(value);
    return error;
}

static const char *produce(const json *task, line *answer) {
    const json *records = json_get(task, "records")->first, *each;
    rd_kafka_t *by = producer(json_text(task, "acks"), json_text(task, "codec"),
                              json_true(task, "idempotent") ? "true" : "false");
    size_t count = 0, n = 0;
    for (each = records; each; each = each->next) count++;
    delivery *answers = calloc(count + 1, sizeof *answers);
    rd_kafka_resp_err_t error = 0;
    for (each = records; each; each = each->next)
        if ((error = send_one(by, json_text(task, "topic"), each, &answers[n++]))) break;
    /* What is not answered in time would write into what is freed here: then the program ends. */
    if (rd_kafka_flush(by, SECONDS * 1000)) exit(1);
    add(answer, "\"offsets\": [");
    for (n = 0; n < count; n++) {
        if (!error) error = answers[n].error;
        add(answer, "%s%lld", n ? ", " : "", (long long)answers[n].offset);
    }
    add(answer, "]");
    free(answers);
    return error ? rd_kafka_err2str(error) : NULL;
}

static void add_record(line *to, const rd_kafka_message_t *message) {
    rd_kafka_headers_t *headers = NULL;
    rd_kafka_timestamp_type_t kind;
    const char *name;
    const void *value;
    size_t length, n = 0;
    add(to, "{\"partition\": %d, \"offset\": %lld, \"timestamp\": %lld, \"key\": ", (int)message->partition,
        (long long)message->offset, (long long)rd_kafka_message_timestamp(message, &kind));
    add_base64(to, message->key, message->key_len);
    add(to, ", \"value\": ");
    add_base64(to, message->payload, message->len);
    add(to, ", \"headers\": [");
    rd_kafka_message_headers(message, &headers);
    for (; headers && !rd_kafka_header_get_all(headers, n, &name, &value, &length); n++) {
        add(to, n ? ", [" : "[");
        add_string(to, name, strlen(name));
        add(to, ", ");
        add_base64(to, value, length);
        add(to, "]");
    }
    add(to, "]}");
}

static const char *consume(const json *task, line *answer) {
    rd_kafka_t *by = consumer("assigned");
    rd_kafka_topic_partition_list_t *places = rd_kafka_topic_partition_list_new(1);
    const json *each = json_get(task, "partitions")->first;
    long long offset = json_number(task, "offset"), wanted = json_number(task, "count"), seen = 0;
    const char *error = NULL;
    time_t deadline = time(NULL) + SECONDS;
    for (; each; each = each->next)
        rd_kafka_topic_partition_list_add(places, json_text(task, "topic"), (int32_t)each->number)->offset =
            offset < 0 ? RD_KAFKA_OFFSET_BEGINNING : offset;
    rd_kafka_assign(by, places);
    add(answer, "\"records\": [");
    while (!error && seen < wanted && time(NULL) < deadline) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(by, 500);
        if (!message) continue;
        if (message->err) {
            error = rd_kafka_err2str(message->err);
        } else {
            add(answer, seen++ ? ", " : "");
            add_record(answer, message);
        }
        rd_kafka_message_destroy(message);
    }
    add(answer, "]");
    rd_kafka_topic_partition_list_destroy(places);
    rd_kafka_consumer_close(by);
    rd_kafka_destroy(by);
    return error;
}

/* One partition of the task, on its way to a call about positions and back. */
static const char *position(const json *task, const char *group, line *answer,
                            rd_kafka_resp_err_t (*ask)(rd_kafka_t *, rd_kafka_topic_partition_list_t *),
                            long long sent) {
    rd_kafka_t *by = consumer(group);
    rd_kafka_topic_partition_list_t *places = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *place = rd_kafka_topic_partition_list_add(
        places, json_text(task, "topic"), (int32_t)json_number(task, "partition"));
    const char *note = json_text(task, "note");
    place->offset = sent;
    if (note) {
        place->metadata = strdup(note);
        place->metadata_size = strlen(note);
    }
    rd_kafka_resp_err_t error = ask(by, places);
    if (!error) error = places->elems[0].err;
    add(answer, "\"offset\": %lld", (long long)places->elems[0].offset);
    rd_kafka_topic_partition_list_destroy(places);
    rd_kafka_consumer_close(by);
    rd_kafka_destroy(by);
    return error ? rd_kafka_err2str(error) : NULL;
}

static rd_kafka_resp_err_t ask_times(rd_kafka_t *by, rd_kafka_topic_partition_list_t *places) {
    return rd_kafka_offsets_for_times(by, places, SECONDS * 1000);
}

static rd_kafka_resp_err_t ask_committed(rd_kafka_t *by, rd_kafka_topic_partition_list_t *places) {
    return rd_kafka_committed(by, places, SECONDS * 1000);
}

static rd_kafka_resp_err_t ask_commit(rd_kafka_t *by, rd_kafka_topic_partition_list_t *places) {
    return rd_kafka_commit(by, places, 0);
}

static const char *offset_at(const json *task, line *answer) {
    return position(task, "assigned", answer, ask_times, json_number(task, "timestamp"));
}

static const char *committed(const json *task, line *answer) {
    return position(task, json_text(task, "group"), answer, ask_committed, RD_KAFKA_OFFSET_INVALID);
}

static const char *commit(const json *task, line *answer) {
    return position(task, json_text(task, "group"), answer, ask_commit, json_number(task, "offset"));
}

static const word WORDS[] = {{"produce", produce},     {"consume", consume}, {"offset_at", offset_at},
                             {"committed", committed}, {"commit", commit},   {NULL, NULL}};

static word_does *find(const char *name) {
    const word *tables[] = {WORDS, ADMIN_WORDS};
    for (int n = 0; n < 2; n++)
        for (const word *each = tables[n]; each->name; each++)
            if (strcmp(each->name, name) == 0) return each->does;
    return NULL;
}

static void serve(const char *text) {
    json *task = json_parse(text);
    line answer = {0};
    word_does *does = find(json_text(task, "do"));
    const char *error = does ? does(task, &answer) : "unknown word";
    if (error) {
        answer.length = 0;
        add(&answer, "{\"error\": ");
        add_string(&answer, error, strlen(error));
        printf("%s}\n", answer.text);
    } else {
        add(&answer, "%s", "");
        printf("{\"ok\": {%s}}\n", answer.text);
    }
    fflush(stdout);
    free(answer.text);
    json_free(task);
}

int main(int count, char **arguments) {
    const char *const none[] = {NULL};
    char *text = NULL;
    size_t room = 0;
    if (count < 2) {
        printf("%s\n", rd_kafka_version_str());
        return 0;
    }
    bootstrap = arguments[1];
    admin_open(client(RD_KAFKA_PRODUCER, conf(none)));
    while (getline(&text, &room, stdin) > 0) serve(text);
    return 0;
}
