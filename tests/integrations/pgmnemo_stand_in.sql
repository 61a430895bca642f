-- What stands in for pgmnemo where it cannot be had: the signatures of its 0.20, and its guards.
-- Own code, small on purpose; it says nothing about how well the real one ranks.

CREATE TABLE pgmnemo.agent_lesson (
    id bigserial PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(),
    role text NOT NULL,
    project_id int,
    topic text NOT NULL,
    lesson_text text NOT NULL,
    importance smallint NOT NULL DEFAULT 3,
    embedding vector(1024),
    commit_sha text,
    artifact_hash text,
    metadata jsonb,
    content_type text,
    content_hash text,
    verified_at timestamptz,
    is_active boolean NOT NULL DEFAULT true
);

CREATE FUNCTION pgmnemo.ingest(
    p_role text, p_project_id int, p_topic text, p_lesson_text text,
    p_importance smallint DEFAULT 3, p_embedding vector(1024) DEFAULT NULL,
    p_commit_sha text DEFAULT NULL, p_artifact_hash text DEFAULT NULL,
    p_metadata jsonb DEFAULT '{}', p_content_type text DEFAULT NULL
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    made bigint;
    mark text := md5(concat_ws('|', p_role, p_topic, coalesce(p_commit_sha, p_artifact_hash)));
BEGIN
    IF length(p_lesson_text) < 20 THEN
        RAISE EXCEPTION 'stand-in: a lesson needs 20 characters, this one has %',
            length(p_lesson_text);
    END IF;
    IF coalesce(p_commit_sha, p_artifact_hash) IS NULL
        AND coalesce(current_setting('pgmnemo.gate_strict', true), 'enforce') = 'enforce' THEN
        RAISE EXCEPTION 'stand-in: no provenance';
    END IF;
    SELECT id INTO made FROM pgmnemo.agent_lesson l
    WHERE l.is_active AND l.role = p_role AND 1 - (l.embedding <=> p_embedding) > 0.98
    ORDER BY l.embedding <=> p_embedding, id LIMIT 1;
    IF made IS NOT NULL THEN
        RETURN made;
    END IF;
    -- Neither the project nor the text is part of the mark, as in the real one.
    UPDATE pgmnemo.agent_lesson SET is_active = false WHERE content_hash = mark;
    INSERT INTO pgmnemo.agent_lesson (
        role, project_id, topic, lesson_text, importance, embedding, commit_sha, artifact_hash,
        metadata, content_type, content_hash, verified_at
    ) VALUES (
        p_role, p_project_id, p_topic, p_lesson_text, p_importance, p_embedding, p_commit_sha,
        p_artifact_hash, p_metadata, p_content_type, mark,
        CASE WHEN coalesce(p_commit_sha, p_artifact_hash) IS NOT NULL THEN now() END
    ) RETURNING id INTO made;
    RETURN made;
END $$;

CREATE FUNCTION pgmnemo.recall_hybrid(
    query_embedding vector(1024), query_text text, k int DEFAULT 10,
    role_filter text DEFAULT NULL, project_id_filter int DEFAULT NULL,
    vec_weight double precision DEFAULT 0.4, bm25_weight double precision DEFAULT 0.4,
    rrf_k int DEFAULT 60
) RETURNS TABLE (
    lesson_id bigint, score double precision, vec_score double precision,
    bm25_score double precision, lesson_text text, metadata jsonb
) LANGUAGE sql STABLE AS $$
    SELECT id, vec_weight * vec + bm25_weight * words, vec, words, found.lesson_text, found.metadata
    FROM (
        SELECT l.id, l.lesson_text, l.metadata,
            coalesce(1 - (l.embedding <=> query_embedding), 0) AS vec,
            ts_rank_cd(to_tsvector('english', l.lesson_text),
                websearch_to_tsquery('english', query_text), 32)::double precision AS words
        FROM pgmnemo.agent_lesson l
        WHERE l.is_active AND l.verified_at IS NOT NULL
            AND (role_filter IS NULL OR l.role = role_filter)
            AND (project_id_filter IS NULL OR l.project_id = project_id_filter)
    ) AS found ORDER BY 2 DESC, id LIMIT k
$$;

CREATE FUNCTION pgmnemo.recall_lessons(
    query_embedding vector(1024), k int DEFAULT 10, role_filter text DEFAULT NULL,
    project_id_filter int DEFAULT NULL, query_text text DEFAULT NULL,
    as_of_ts timestamptz DEFAULT NULL, exclude_dag_id text DEFAULT NULL,
    p_content_types text[] DEFAULT NULL, p_min_score real DEFAULT NULL
) RETURNS TABLE (
    lesson_id bigint, score double precision, lesson_text text, metadata jsonb,
    vec_score double precision, bm25_score double precision
) LANGUAGE sql STABLE AS $$
    SELECT h.lesson_id, h.score, h.lesson_text, h.metadata, h.vec_score, h.bm25_score
    FROM pgmnemo.recall_hybrid(
        query_embedding, query_text, k, role_filter, project_id_filter
    ) AS h WHERE p_min_score IS NULL OR h.score >= p_min_score
$$;

CREATE FUNCTION pgmnemo.recall_fast(
    query_embedding vector(1024), k int DEFAULT 10, role_filter text DEFAULT NULL,
    project_id_filter int DEFAULT NULL
) RETURNS TABLE (lesson_id bigint, score double precision, lesson_text text)
LANGUAGE sql STABLE AS $$
    SELECT l.id, 1 - (l.embedding <=> query_embedding), l.lesson_text FROM pgmnemo.agent_lesson l
    WHERE (role_filter IS NULL OR l.role = role_filter)
        AND (project_id_filter IS NULL OR l.project_id = project_id_filter)
    ORDER BY l.embedding <=> query_embedding LIMIT k
$$;
