#include "admin.h"

#include <stdio.h>
#include <string.h>

enum { SECONDS = 60 };

static rd_kafka_t *by;
static rd_kafka_queue_t *answers;
static char said[1024];

void admin_open(rd_kafka_t *client) {
    by = client;
    answers = rd_kafka_queue_new(by);
}

/* What went wrong, in words that stay until the next time. */
static const char *say(rd_kafka_resp_err_t error, const char *more) {
    if (!error) return NULL;
    snprintf(said, sizeof said, "%s: %s", rd_kafka_err2str(error), more ? more : "");
    return said;
}

/* The error of the one thing a request was about, whichever kind of answer it is. */
static const char *outcome(rd_kafka_event_t *event) {
    size_t count = 0;
    if (rd_kafka_event_error(event)) return say(rd_kafka_event_error(event), rd_kafka_event_error_string(event));
    switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_CREATETOPICS_RESULT:
    case RD_KAFKA_EVENT_DELETETOPICS_RESULT:
    case RD_KAFKA_EVENT_CREATEPARTITIONS_RESULT: {
        const rd_kafka_topic_result_t *topic = *rd_kafka_CreateTopics_result_topics(event, &count);
        return say(rd_kafka_topic_result_error(topic), rd_kafka_topic_result_error_string(topic));
    }
    case RD_KAFKA_EVENT_ALTERCONFIGS_RESULT: {
        const rd_kafka_ConfigResource_t *resource = *rd_kafka_AlterConfigs_result_resources(event, &count);
        return say(rd_kafka_ConfigResource_error(resource), rd_kafka_ConfigResource_error_string(resource));
    }
    case RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT: {
        const rd_kafka_ConfigResource_t *resource = *rd_kafka_DescribeConfigs_result_resources(event, &count);
        return say(rd_kafka_ConfigResource_error(resource), rd_kafka_ConfigResource_error_string(resource));
    }
    case RD_KAFKA_EVENT_DELETERECORDS_RESULT:
        return say(rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event))->elems[0].err, NULL);
    case RD_KAFKA_EVENT_DELETEGROUPS_RESULT: {
        const rd_kafka_error_t *error = rd_kafka_group_result_error(*rd_kafka_DeleteGroups_result_groups(event, &count));
        return error ? say(rd_kafka_error_code(error), rd_kafka_error_string(error)) : NULL;
    }
    default:
        return NULL;
    }
}

static rd_kafka_event_t *answered(void) { return rd_kafka_queue_poll(answers, SECONDS * 1000); }

/* The answer awaited, and forgotten but for what went wrong. */
static const char *done(void) {
    rd_kafka_event_t *event = answered();
    const char *error = outcome(event);
    rd_kafka_event_destroy(event);
    return error;
}

static const char *create(const json *task, line *answer) {
    (void)answer;
    char why[512];
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(json_text(task, "topic"), (int)json_number(task, "count"), 1, why, sizeof why);
    for (const json *each = json_get(task, "configs")->first; each; each = each->next)
        rd_kafka_NewTopic_set_config(topic, each->name, each->text);
    rd_kafka_CreateTopics(by, &topic, 1, NULL, answers);
    rd_kafka_NewTopic_destroy(topic);
    return done();
}

static const char *delete_topic(const json *task, line *answer) {
    (void)answer;
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(json_text(task, "topic"));
    rd_kafka_DeleteTopics(by, &topic, 1, NULL, answers);
    rd_kafka_DeleteTopic_destroy(topic);
    return done();
}

static const char *grow(const json *task, line *answer) {
    (void)answer;
    char why[512];
    rd_kafka_NewPartitions_t *more = rd_kafka_NewPartitions_new(json_text(task, "topic"), (size_t)json_number(task, "count"), why, sizeof why);
    rd_kafka_CreatePartitions(by, &more, 1, NULL, answers);
    rd_kafka_NewPartitions_destroy(more);
    return done();
}

static const char *alter(const json *task, line *answer) {
    (void)answer;
    rd_kafka_ConfigResource_t *topic = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, json_text(task, "topic"));
    for (const json *each = json_get(task, "configs")->first; each; each = each->next)
        rd_kafka_ConfigResource_set_config(topic, each->name, each->text);
    rd_kafka_AlterConfigs(by, &topic, 1, NULL, answers);
    rd_kafka_ConfigResource_destroy(topic);
    return done();
}

static const char *configs(const json *task, line *answer) {
    rd_kafka_ConfigResource_t *topic = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, json_text(task, "topic"));
    size_t count;
    rd_kafka_DescribeConfigs(by, &topic, 1, NULL, answers);
    rd_kafka_ConfigResource_destroy(topic);
    rd_kafka_event_t *event = answered();
    const char *error = outcome(event);
    if (!error) {
        const rd_kafka_ConfigResource_t *found = *rd_kafka_DescribeConfigs_result_resources(event, &count);
        const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(found, &count);
        add(answer, "\"configs\": {");
        for (size_t n = 0; n < count; n++) {
            const char *name = rd_kafka_ConfigEntry_name(entries[n]), *value = rd_kafka_ConfigEntry_value(entries[n]);
            add(answer, "%s\"%s\": ", n ? ", " : "", name);
            if (value)
                add_string(answer, value, strlen(value));
            else
                add(answer, "null");
        }
        add(answer, "}");
    }
    rd_kafka_event_destroy(event);
    return error;
}

static const char *trim(const json *task, line *answer) {
    (void)answer;
    rd_kafka_topic_partition_list_t *places = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(places, json_text(task, "topic"), (int32_t)json_number(task, "partition"))->offset = json_number(task, "offset");
    rd_kafka_DeleteRecords_t *before = rd_kafka_DeleteRecords_new(places);
    rd_kafka_DeleteRecords(by, &before, 1, NULL, answers);
    rd_kafka_DeleteRecords_destroy(before);
    rd_kafka_topic_partition_list_destroy(places);
    return done();
}

static const char *forget(const json *task, line *answer) {
    (void)answer;
    rd_kafka_DeleteGroup_t *group = rd_kafka_DeleteGroup_new(json_text(task, "group"));
    rd_kafka_DeleteGroups(by, &group, 1, NULL, answers);
    rd_kafka_DeleteGroup_destroy(group);
    return done();
}

static const char *groups(const json *task, line *answer) {
    (void)task;
    const struct rd_kafka_group_list *found;
    rd_kafka_resp_err_t error = rd_kafka_list_groups(by, NULL, &found, SECONDS * 1000);
    if (error) return say(error, NULL);
    add(answer, "\"groups\": [");
    for (int n = 0; n < found->group_cnt; n++) {
        add(answer, n ? ", " : "");
        add_string(answer, found->groups[n].group, strlen(found->groups[n].group));
    }
    add(answer, "]");
    rd_kafka_group_list_destroy(found);
    return NULL;
}

static const char *cluster(const json *task, line *answer) {
    (void)task;
    const struct rd_kafka_metadata *found;
    rd_kafka_resp_err_t error = rd_kafka_metadata(by, 0, NULL, &found, SECONDS * 1000);
    if (error) return say(error, NULL);
    add(answer, "\"brokers\": [");
    for (int n = 0; n < found->broker_cnt; n++)
        add(answer, "%s\"%s:%d\"", n ? ", " : "", found->brokers[n].host, found->brokers[n].port);
    add(answer, "]");
    rd_kafka_metadata_destroy(found);
    return NULL;
}

static const char *topics(const json *task, line *answer) {
    (void)task;
    const struct rd_kafka_metadata *found;
    rd_kafka_resp_err_t error = rd_kafka_metadata(by, 1, NULL, &found, SECONDS * 1000);
    if (error) return say(error, NULL);
    add(answer, "\"topics\": {");
    for (int n = 0; n < found->topic_cnt; n++)
        add(answer, "%s\"%s\": %d", n ? ", " : "", found->topics[n].topic, found->topics[n].partition_cnt);
    add(answer, "}");
    rd_kafka_metadata_destroy(found);
    return NULL;
}

const word ADMIN_WORDS[] = {{"create", create},   {"delete", delete_topic}, {"grow", grow},     {"alter", alter},
                            {"configs", configs}, {"trim", trim},           {"forget", forget}, {"groups", groups},
                            {"cluster", cluster}, {"topics", topics},       {NULL, NULL}};
